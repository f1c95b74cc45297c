"""Block devices: whole ones only, so that no byte is counted twice."""

from __future__ import annotations

import math

from agent.collectors.collector import Counters, Sources
from agent.host.block import kind, whole_devices
from agent.host.hostfs import HostFs, KeptFile
from telemetry.window import Key, Sample

_SECTOR_BYTES = 512
_MILLI = 1e-3
_LOOK_AGAIN = 30.0
"""Seconds between two looks for devices that came or went."""
_MOST_DEVICES = 64


class _Disk:
    """One device."""

    __slots__ = ("counters", "file", "key", "texts")

    def __init__(self, hostfs: HostFs, name: str) -> None:
        self.key: Key = ("disk", name)
        self.file: KeptFile = hostfs.kept(f"/sys/block/{name}/stat")
        self.counters = Counters()
        medium = kind(hostfs, name)
        self.texts = {"kind": medium} if medium else {}


class DiskCollector:
    """Throughput, waits and queue of each device from /sys/block/*/stat.

    The fields and units are those of Documentation/block/stat.rst of the kernel: requests, sectors
    of 512 bytes, milliseconds. The device's file is read rather than /proc/diskstats, which lists
    every partition and stacked device too. Ticks of 32 bits wrap: that counter starts anew.
    """

    name = "disk"
    every = 1.0
    read_at: float | None = None

    def __init__(self, sources: Sources) -> None:
        self._hostfs = sources.hostfs
        self._disks: dict[str, _Disk] = {}
        self._look_at = -math.inf
        self._extra: frozenset[str] = frozenset()
        self._reasons: dict[str, str] = {}
        self.errors_total = 0

    def also(self, names: frozenset[str]) -> None:
        """Stacked devices that count all the same: loop devices that a GPU process reads from."""
        if names != self._extra:
            self._extra = names
            self._look_at = -math.inf

    def collect(self, now: float, sample: Sample) -> None:
        if now >= self._look_at:
            self._look(now)
        for name, disk in list(self._disks.items()):
            try:
                fields = disk.file.record().split()
                row = self._row(disk, tuple(map(int, fields[:11])), now)
            except (OSError, ValueError) as error:
                self._drop(name, getattr(error, "strerror", None) or "its stat has an unknown form")
                continue
            if row:
                self.read_at = now
                sample.rows[disk.key] = row
                if disk.texts:
                    sample.texts[disk.key] = disk.texts

    def unavailable(self) -> dict[str, str]:
        if not self._disks and not self._reasons:
            return {"disk": "no whole block device is visible in /sys/block"}
        return {f"disk {name}": reason for name, reason in self._reasons.items()}

    def _look(self, now: float) -> None:
        self._look_at = now + _LOOK_AGAIN
        names = whole_devices(self._hostfs)[:_MOST_DEVICES]
        names += sorted(self._extra.difference(names))[:_MOST_DEVICES]
        self._disks = {name: self._disks.get(name) or _Disk(self._hostfs, name) for name in names}
        self._reasons = {name: reason for name, reason in self._reasons.items() if name in names}

    def _drop(self, name: str, reason: str) -> None:
        self.errors_total += 1
        del self._disks[name]
        self._reasons[name] = reason

    def _row(self, disk: _Disk, stat: tuple[int, ...], now: float) -> dict[str, float] | None:
        grown = disk.counters.advance(stat, now)
        if grown is None:
            return None
        elapsed, parts = grown
        reads, _, read_sectors, read_ms, writes, _, write_sectors, write_ms, _, io_ms, queue_ms = (
            parts
        )
        row: dict[str, float] = {}
        if read_sectors is not None:
            row["read_bytes_per_second"] = read_sectors * _SECTOR_BYTES / elapsed
        if write_sectors is not None:
            row["write_bytes_per_second"] = write_sectors * _SECTOR_BYTES / elapsed
        if reads is not None:
            row["reads_per_second"] = reads / elapsed
            if reads and read_ms is not None:
                row["read_await_seconds"] = read_ms * _MILLI / reads
        if writes and write_ms is not None:
            row["write_await_seconds"] = write_ms * _MILLI / writes
        if io_ms is not None:
            row["busy_ratio"] = min(1.0, io_ms * _MILLI / elapsed)
        if queue_ms is not None:
            row["queue_depth"] = queue_ms * _MILLI / elapsed
        return row
