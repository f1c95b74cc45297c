"""The cards and drives that scenarios are built from (`hardware.toml`)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from telemetry.simulation.quantity import Dimension
from telemetry.simulation.reader import Table

MEBI = 1 << 20
RESERVED_BYTES = 600 * MEBI
"""What the driver keeps of a card; NVML (v2) tells it apart from what is used."""


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU as the simulator stages it. `nvlink` is "all", "pairs" or "none"."""

    name: str
    memory_bytes: int
    power_limit_watts: float
    idle_watts: float
    held_watts: float
    clock_hertz: float
    memory_clock_hertz: float
    compute_capability: str
    pci_device_id: str
    pcie_generation: int
    nvlink: str
    gpm: bool
    reserved_bytes: int = RESERVED_BYTES


@dataclass(frozen=True, slots=True)
class Drive:
    """What one block device of a kind does. `swap` is the rate at which swap comes back."""

    read_bytes_per_second: float
    write_bytes_per_second: float
    reads_per_second: float
    latency_seconds: float
    swap_bytes_per_second: float

    def capacity(self, read_size_bytes: float) -> float:
        """Bytes per second in reads of that size."""
        return min(self.read_bytes_per_second, self.reads_per_second * read_size_bytes)


@dataclass(frozen=True, slots=True)
class Hardware:
    """All cards by NVML name, all drives by kind."""

    cards: dict[str, Card]
    drives: dict[str, Drive]


@cache
def hardware() -> Hardware:
    """The hardware that Talla ships descriptions of."""
    text = resources.files(__package__).joinpath("hardware.toml").read_text("utf-8")
    table = Table(tomllib.loads(text), "hardware.toml")
    cards = [_card(entry) for entry in table.listed_tables("card")]
    drives = {kind: _drive(entry) for kind, entry in table.named_tables("drive")}
    table.close()
    return Hardware({card.name: card for card in cards}, drives)


def _card(entry: Table) -> Card:
    card = Card(
        name=entry.text("name"),
        memory_bytes=entry.whole("memory_mib") * MEBI,
        power_limit_watts=entry.number("power_limit_watts"),
        idle_watts=entry.number("idle_watts"),
        held_watts=entry.number("held_watts"),
        clock_hertz=entry.number("clock_mhz") * 1e6,
        memory_clock_hertz=entry.number("memory_clock_mhz") * 1e6,
        compute_capability=entry.text("compute_capability"),
        pci_device_id=entry.text("pci_device_id"),
        pcie_generation=entry.whole("pcie_generation"),
        nvlink=entry.text("nvlink", among=("all", "pairs", "none")),
        gpm=entry.flag("gpm", False),
    )
    entry.close()
    return card


def _drive(entry: Table) -> Drive:
    drive = Drive(
        read_bytes_per_second=entry.quantity("read", Dimension.BYTES_PER_SECOND),
        write_bytes_per_second=entry.quantity("write", Dimension.BYTES_PER_SECOND),
        reads_per_second=entry.number("reads_per_second"),
        latency_seconds=entry.quantity("latency", Dimension.SECONDS),
        swap_bytes_per_second=entry.quantity("swap", Dimension.BYTES_PER_SECOND),
    )
    entry.close()
    return drive
