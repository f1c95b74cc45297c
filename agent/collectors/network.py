"""Network interfaces and InfiniBand ports: what passes, as a share of the link."""

from __future__ import annotations

import math

from agent.collectors.collector import Counters, Sources
from agent.host.hostfs import HostFs
from agent.host.nics import Port, ports
from telemetry.window import Key, Sample

_LOOK_AGAIN = 30.0
"""Seconds between two looks at interfaces, speed and state: some drivers ask the card for them."""
_MOST_PORTS = 48


class _Nic:
    """One port."""

    __slots__ = ("counters", "key", "port", "rx", "speed", "texts", "tx")

    def __init__(self, hostfs: HostFs, port: Port) -> None:
        self.port = port
        self.key: Key = ("nic", port.name)
        self.rx = hostfs.kept(port.rx)
        self.tx = hostfs.kept(port.tx)
        self.counters = Counters()
        self.speed: int | None = None
        self.texts: dict[str, str] = {}


class NetworkCollector:
    """Rates from each port's own counters.

    /sys/class/net is read, port by port, and not /proc/net/dev: that lists every veth of every
    container, and InfiniBand is not in it.
    """

    name = "network"
    every = 1.0
    read_at: float | None = None

    def __init__(self, sources: Sources) -> None:
        self._hostfs = sources.hostfs
        self._nics: dict[Port, _Nic] = {}
        self._look_at = -math.inf
        self._reasons: dict[str, str] = {}
        self.errors_total = 0

    def collect(self, now: float, sample: Sample) -> None:
        if now >= self._look_at:
            self._look(now)
        for nic in self._nics.values():
            row: dict[str, float] = {}
            try:
                self._read(nic, row, now)
            except (OSError, ValueError) as error:
                self.errors_total += 1
                nic.counters.restart()
                self._reasons[nic.port.name] = getattr(error, "strerror", None) or str(error)
            if row:
                self.read_at = now
            if nic.speed is not None:
                row["speed_bits_per_second"] = float(nic.speed)
            if row:
                sample.rows[nic.key] = row
            sample.texts[nic.key] = nic.texts

    def unavailable(self) -> dict[str, str]:
        if not self._nics:
            return {
                "nic": "no network interface with a device behind it is visible in /sys/class/net"
            }
        reasons = {f"nic {name}": reason for name, reason in self._reasons.items()}
        for nic in self._nics.values():
            if nic.speed is None:
                down = nic.texts.get("state") == "down"
                reason = "the link is down" if down else "the driver tells no link speed"
                for metric in ("speed_bits_per_second", "rx_link_ratio", "tx_link_ratio"):
                    reasons[f"nic {nic.port.name} {metric}"] = reason
        return reasons

    def _look(self, now: float) -> None:
        self._look_at = now + _LOOK_AGAIN
        found = ports(self._hostfs)[:_MOST_PORTS]
        self._nics = {port: self._nics.get(port) or _Nic(self._hostfs, port) for port in found}
        self._reasons = {}
        for port, nic in self._nics.items():
            nic.speed = port.speed_bits_per_second(self._hostfs)
            state = port.state(self._hostfs)
            told = {"state": state, "interface": port.interface(self._hostfs)}
            told["gid_type"] = port.gid_type(self._hostfs)
            nic.texts = {"kind": port.kind} | {n: text for n, text in told.items() if text}

    def _read(self, nic: _Nic, row: dict[str, float], now: float) -> None:
        counts = (int(nic.rx.record()), int(nic.tx.record()))
        grown = nic.counters.advance(counts, now)
        if grown is None:
            return
        elapsed, moved = grown
        for name, count in zip(("rx", "tx"), moved, strict=True):
            if count is not None:
                rate = count * nic.port.words / elapsed
                row[f"{name}_bytes_per_second"] = rate
                if nic.speed is not None:
                    row[f"{name}_link_ratio"] = rate * 8 / nic.speed
