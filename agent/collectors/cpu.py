"""Processor time and load."""

from __future__ import annotations

from agent.collectors.collector import Counters, HostCollector, Sources
from agent.probe import Probe


class CpuCollector(HostCollector):
    """`cpu_busy_ratio`, `cpu_iowait_ratio` and `load_1m` (man 5 proc_stat, proc_loadavg)."""

    name = "cpu"

    def __init__(self, sources: Sources) -> None:
        self._stat = sources.hostfs.kept("/proc/stat")
        self._load = sources.hostfs.kept("/proc/loadavg")
        self._times = Counters()
        super().__init__(
            (
                Probe(("cpu_busy_ratio", "cpu_iowait_ratio"), self._read_times),
                Probe(("load_1m",), self._read_load),
            )
        )

    def _read_times(self, values: dict[str, float]) -> None:
        # The first line sums all processors. Guest time is within user time already.
        fields = self._stat.record(limit=256).split(b"\n", 1)[0].split()
        if len(fields) < 8 or fields[0] != b"cpu":
            raise ValueError("/proc/stat does not begin with the processors' sum")
        times = tuple(int(field) for field in fields[1:9])
        grown = self._times.advance(times, self._now)
        if grown is None:
            return
        # idle and iowait may fall a little (man 5 proc_stat); then this tick has no value.
        parts = [part for part in grown[1] if part is not None]
        total = sum(parts)
        if len(parts) < len(times) or total == 0:
            return
        idle, iowait = parts[3], parts[4]
        values["cpu_busy_ratio"] = (total - idle - iowait) / total
        values["cpu_iowait_ratio"] = iowait / total

    def _read_load(self, values: dict[str, float]) -> None:
        values["load_1m"] = float(self._load.record().split(None, 1)[0])
