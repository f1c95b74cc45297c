"""Host memory, swap and faults."""

from __future__ import annotations

import os

from agent.collectors.collector import Counters, HostCollector, Sources
from agent.host.hostfs import number_after
from agent.probe import Probe, ReadingFailed, Trouble

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_KIB = 1024


class MemoryCollector(HostCollector):
    """Levels from /proc/meminfo and rates from /proc/vmstat (man 5 proc_meminfo, proc_vmstat).

    Memory in use is the total less what the kernel calls available: page cache that can be given
    back at once is not in use.
    """

    name = "memory"

    def __init__(self, sources: Sources) -> None:
        self._meminfo = sources.hostfs.kept("/proc/meminfo")
        self._vmstat = sources.hostfs.kept("/proc/vmstat")
        self._counts = Counters()
        self._text = b""
        super().__init__(
            (
                Probe(("memory_total_bytes",), self._read_total),
                Probe(("memory_used_bytes",), self._read_used),
                Probe(("swap_used_bytes",), self._read_swap),
                Probe(
                    (
                        "swap_in_bytes_per_second",
                        "major_faults_per_second",
                        "refaults_per_second",
                    ),
                    self._read_rates,
                ),
            )
        )

    def _read_total(self, values: dict[str, float]) -> None:
        self._text = b""
        self._text = self._meminfo.record()
        values["memory_total_bytes"] = self._bytes(b"MemTotal:")

    def _read_used(self, values: dict[str, float]) -> None:
        values["memory_used_bytes"] = self._bytes(b"MemTotal:") - self._bytes(b"MemAvailable:")

    def _read_swap(self, values: dict[str, float]) -> None:
        values["swap_used_bytes"] = self._bytes(b"SwapTotal:") - self._bytes(b"SwapFree:")

    def _bytes(self, label: bytes) -> float:
        if not self._text:
            raise ReadingFailed(Trouble.TRANSIENT, "/proc/meminfo could not be read")
        kib = number_after(self._text, label)
        if kib is None:
            raise ReadingFailed(
                Trouble.PERMANENT, f"this kernel's /proc/meminfo has no {label.decode()[:-1]}"
            )
        return float(kib * _KIB)

    def _read_rates(self, values: dict[str, float]) -> None:
        text = self._vmstat.read()
        swapped = number_after(text, b"\npswpin ")
        faults = number_after(text, b"\npgmajfault ")
        # A kernel without swap has no pswpin: then nothing can come back from swap.
        if faults is None:
            raise ReadingFailed(Trouble.PERMANENT, "this kernel's /proc/vmstat has no pgmajfault")
        refaults = _refaults(text)
        grown = self._counts.advance((swapped or 0, faults, refaults or 0), self._now)
        if grown is None:
            return
        elapsed, (pages, majors, again) = grown
        if pages is not None and swapped is not None:
            values["swap_in_bytes_per_second"] = pages * _PAGE_BYTES / elapsed
        if majors is not None:
            values["major_faults_per_second"] = majors / elapsed
        if again is not None and refaults is not None:
            values["refaults_per_second"] = again / elapsed


def _refaults(vmstat: bytes) -> int | None:
    """Pages read again that would have stayed, had there been a little more memory; of files and
    of processes, one number before Linux 5.9 (mm/workingset.c)."""
    found = [
        count
        for name in (b"_file", b"_anon", b"")
        if (count := number_after(vmstat, b"\nworkingset_activate" + name + b" ")) is not None
    ]
    return sum(found) if found else None
