"""PCI addresses, as NVML and as sysfs write them."""

from __future__ import annotations


def same_address(bus_id: str | None, addresses: frozenset[str]) -> bool:
    """Whether NVML's bus id (domain of 8 digits) is among addresses of sysfs (of 4 or 5)."""
    if bus_id is None or not addresses:
        return False
    domain, _, rest = bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}" in addresses
