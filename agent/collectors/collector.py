"""What a collector is, what it is given, and rates from counters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agent.host.hostfs import HostFs
from agent.probe import Probe, ProbeSet
from telemetry.window import Sample

if TYPE_CHECKING:
    from agent.nvml.client import NvmlClient

HOST_KEY = ("host",)


class Collector(Protocol):
    """Reads one part of the machine into samples."""

    name: str
    every: float
    """Seconds between two readings; `collect` is still called at each tick."""
    read_at: float | None
    """Monotonic time of the newest reading that gave something, None before the first."""

    @property
    def errors_total(self) -> int:
        """Readings that failed so far and are tried again."""

    def collect(self, now: float, sample: Sample) -> None:
        """Adds rows and texts to the sample. `now` is monotonic time in seconds.

        What cannot be read is left out and named by `unavailable`; nothing is raised for it.
        """

    def unavailable(self) -> dict[str, str]:
        """What is absent, with the reason.

        A metric of the host by its name; of others `MEASUREMENT SUBJECT METRIC`, less what does
        not matter: `gpu UUID` is all of one GPU, `disk` all disks.
        """


class HostCollector:
    """A collector of the host's own row, each second, by probes."""

    name: str
    every = 1.0
    read_at: float | None = None

    def __init__(self, probes: Iterable[Probe]) -> None:
        self._probes = ProbeSet(probes)
        self._now = 0.0
        """The time of the reading, for the probes' sources."""

    @property
    def errors_total(self) -> int:
        return self._probes.errors_total

    def collect(self, now: float, sample: Sample) -> None:
        self._now = now
        values = self._probes.read()
        if values:
            self.read_at = now
            sample.rows.setdefault(HOST_KEY, {}).update(values)

    def unavailable(self) -> dict[str, str]:
        return self._probes.unavailable()


@dataclass(frozen=True, slots=True)
class Sources:
    """What collectors read from. Without `nvml` there are no GPUs to ask."""

    hostfs: HostFs = field(default_factory=HostFs)
    nvml: NvmlClient | None = None
    data_paths: tuple[str, ...] = ()
    engines: bool = True
    engine_urls: tuple[str, ...] = ()
    gpu_patience: float | None = 0.5
    """Seconds that a tick waits for the driver; None: until it answers or is known to be hung."""


class Counters:
    """The last reading of some counters of one subject, which always come in the same order."""

    __slots__ = ("_time", "_values")

    def __init__(self) -> None:
        self._values: tuple[int, ...] | None = None
        self._time = 0.0

    def advance(self, values: tuple[int, ...], now: float) -> tuple[float, list[int | None]] | None:
        """Seconds since the last reading, and what each counter grew by.

        None at the first reading. A counter that fell (a wrap at 32 bits, a device that came
        back) starts anew: None in its place.
        """
        before, elapsed = self._values, now - self._time
        self._values, self._time = values, now
        if before is None or elapsed <= 0 or len(before) != len(values):
            return None
        pairs = zip(values, before, strict=True)
        return elapsed, [new - old if new >= old else None for new, old in pairs]

    def restart(self) -> None:
        """Forgets the last reading, so that no rate spans a time in which nothing was read."""
        self._values = None
