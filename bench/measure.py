"""What a tree of processes costs: processor time to the nanosecond, memory, calls of NVML."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one program. `ticks` are the seconds of it; CPU is of the whole tree."""

    ticks: float
    cpu_seconds: float
    pss_bytes: float
    rss_bytes: float
    nvml_calls: float
    tick_seconds: tuple[float, ...] = ()
    """Of the agent, from due time to sample kept, one for each tick."""

    @property
    def cpu_seconds_per_1000_ticks(self) -> float:
        return self.cpu_seconds / self.ticks * 1000

    @property
    def nvml_calls_per_tick(self) -> float:
        return self.nvml_calls / self.ticks


def median(runs: Iterable[Run], figure: str) -> float:
    """The median of one figure over runs."""
    return float(statistics.median(getattr(run, figure) for run in runs))


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, -int(-share * len(ordered) // 1) - 1))]


def tree(root: int) -> list[int]:
    """The process and all below it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, below = [], [root]
    while below:
        pid = below.pop()
        found.append(pid)
        below += parents.get(pid, [])
    return found


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time of processes, with that of their children that have ended."""
    total = 0.0
    for pid in pids:
        fields = _stat(pid)
        if fields:
            total += (int(fields[13]) + int(fields[14])) / _TICKS
            try:
                # The clock of a process's processor time (man 3 clock_getcpuclockid, MAKE_PROCESS
                # _CPUCLOCK of Linux): nanoseconds, where /proc has hundredths of a second.
                total += time.clock_gettime((~pid << 3) | 2)
            except OSError:
                continue
    return total


def memory(pids: Iterable[int]) -> tuple[float, float]:
    """PSS and RSS in bytes."""
    pss = rss = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
        except OSError:
            continue
        for line in text.splitlines():
            if line.startswith("Pss:"):
                pss += int(line.split()[1]) * _KIB
            elif line.startswith("Rss:"):
                rss += int(line.split()[1]) * _KIB
    return float(pss), float(rss)


def nvml_calls(prefix: Path) -> int:
    """Calls that all processes made to the fake library (its FAKENVML_STATS)."""
    # struct shm_head: 16 bytes of tag, the number of functions, the number of calls.
    files = prefix.parent.glob(f"{prefix.name}.*.bin")
    return sum(int.from_bytes(file.read_bytes()[24:32], "little") for file in files)


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on, so that field 3 of the manual is 0."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return []
