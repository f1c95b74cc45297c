"""Network interfaces, and ports of InfiniBand and RoCE, that exist in hardware."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.host.hostfs import HostFs

_ETHERNET = 1  # ARPHRD_ETHER; 32 is IP over InfiniBand, whose port is counted itself
_MEGA = 1_000_000
_RATE = re.compile(r"([\d.]+) Gb/sec")
_MOST_GIDS = 32


_KINDS = {"InfiniBand": "infiniband", "Ethernet": "roce"}
"""What a port is by its link_layer."""


@dataclass(frozen=True, slots=True)
class Port:
    """One interface or port: `kind` is ethernet, infiniband or roce.

    `words` is what one unit of its byte counters stands for in bytes.
    """

    name: str
    kind: str
    base: str
    rx: str
    tx: str
    words: int

    def speed_bits_per_second(self, hostfs: HostFs) -> int | None:
        """Speed of the link; None where it is down or virtual and does not say (-1)."""
        if self.kind != "ethernet":
            found = _RATE.search(hostfs.maybe(f"{self.base}/rate") or "")
            return int(float(found.group(1)) * 1e9) if found else None
        speed = hostfs.number(f"{self.base}/speed")
        # Some drivers say -1 as an unsigned number of 32 bits.
        return speed * _MEGA if speed is not None and 0 < speed < 0xFFFF_FFFF else None

    def state(self, hostfs: HostFs) -> str | None:
        """`up` or `down`; None where the driver does not say."""
        if self.kind != "ethernet":
            text = hostfs.maybe(f"{self.base}/state")  # "4: ACTIVE"
            return None if text is None else "up" if text.startswith("4:") else "down"
        text = hostfs.maybe(f"{self.base}/operstate")
        if text == "unknown":  # drivers without operational state: the carrier tells
            carrier = hostfs.number(f"{self.base}/carrier")
            return None if carrier is None else "up" if carrier else "down"
        return None if text is None else "up" if text == "up" else "down"

    def interface(self, hostfs: HostFs) -> str | None:
        """The network interface on whose link a port of RDMA over Ethernet is; else None."""
        return self._of_gids(hostfs, "ndevs")

    def gid_type(self, hostfs: HostFs) -> str | None:
        """How RDMA is carried: `RoCE v2` where the port has it, else what it has; else None."""
        return self._of_gids(hostfs, "types", "RoCE v2")

    def _of_gids(self, hostfs: HostFs, what: str, best: str | None = None) -> str | None:
        """The first answer of the port's GIDs, or the `best`; a GID that is free has none."""
        if self.kind != "roce":
            return None
        folder = f"{self.base}/gid_attrs/{what}"
        names = sorted(hostfs.names(folder), key=lambda name: (len(name), name))[:_MOST_GIDS]
        told = [text for name in names if (text := hostfs.maybe(f"{folder}/{name}")) is not None]
        return best if best in told else told[0] if told else None


def ports(hostfs: HostFs) -> list[Port]:
    """Interfaces with a device behind them, and ports of InfiniBand and RoCE, by name.

    Left out: what is made of software (lo, veth, bridges, bonds, VLANs: their bytes pass a device
    or never leave the machine) and virtual functions lent to virtual machines. RDMA over Ethernet
    passes the kernel by: its bytes are the port's, and not counted by the interface beside it
    (for mlx5: Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst).
    """
    found = []
    for name in hostfs.names("/sys/class/net"):
        base = f"/sys/class/net/{name}"
        if (
            hostfs.exists(f"{base}/device")
            and not hostfs.exists(f"{base}/device/physfn")
            and hostfs.number(f"{base}/type") == _ETHERNET
        ):
            counters = f"{base}/statistics"
            found.append(
                Port(name, "ethernet", base, f"{counters}/rx_bytes", f"{counters}/tx_bytes", 1)
            )
    for card in hostfs.names("/sys/class/infiniband"):
        numbers = hostfs.names(f"/sys/class/infiniband/{card}/ports")
        for number in numbers:
            base = f"/sys/class/infiniband/{card}/ports/{number}"
            counters = f"{base}/counters"
            kind = _KINDS.get(hostfs.maybe(f"{base}/link_layer") or "")
            if kind is None or not hostfs.exists(f"{counters}/port_rcv_data"):
                continue
            name = card if len(numbers) == 1 else f"{card}/{number}"
            # Counted in words of 4 bytes (Documentation/ABI/stable/sysfs-class-infiniband).
            found.append(
                Port(
                    name,
                    kind,
                    base,
                    f"{counters}/port_rcv_data",
                    f"{counters}/port_xmit_data",
                    4,
                )
            )
    return found
