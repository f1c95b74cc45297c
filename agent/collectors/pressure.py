"""Pressure stall information (https://docs.kernel.org/accounting/psi.html)."""

from __future__ import annotations

import errno

from agent.collectors.collector import Counters, HostCollector, Sources
from agent.host.cgroups import NO_PSI
from agent.host.hostfs import KeptFile, number_after
from agent.probe import Probe, ReadingFailed, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent.probe import Source

_MICRO = 1e-6


class PressureCollector(HostCollector):
    """The share of each second in which tasks waited, from the counters of microseconds.

    The kernel's own averages are over 10 s and more; its totals are brought up to date by the
    read itself, so that they are right for one second.
    """

    name = "pressure"

    def __init__(self, sources: Sources) -> None:
        probes = []
        for resource in ("cpu", "io", "memory"):
            # "full" of the processors is always 0 for the whole system.
            degrees = ("some",) if resource == "cpu" else ("some", "full")
            names = tuple(f"pressure_{resource}_{degree}_ratio" for degree in degrees)
            file = sources.hostfs.kept(f"/proc/pressure/{resource}")
            probes.append(Probe(names, self._reader(file, names)))
        super().__init__(probes)

    def _reader(self, file: KeptFile, names: tuple[str, ...]) -> Source:
        counters = Counters()

        def read(values: dict[str, float]) -> None:
            try:
                text = file.record()
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EOPNOTSUPP):
                    raise ReadingFailed(Trouble.PERMANENT, NO_PSI) from error
                raise
            totals = []
            for line in text.splitlines()[: len(names)]:
                total = number_after(line, b"total=")
                if total is None:
                    raise ReadingFailed(Trouble.PERMANENT, f"{file.path} has an unknown form")
                totals.append(total)
            grown = counters.advance(tuple(totals), self._now)
            if grown is None:
                return
            elapsed, waited = grown
            for name, part in zip(names, waited, strict=False):
                if part is not None:
                    values[name] = min(1.0, part * _MICRO / elapsed)

        return read
