"""Windows of a staged server through the real aggregator, judged as the daemon does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent.alerts.alarm import Alarm
from agent.alerts.rulebook import Rulebook
from telemetry.aggregate import Aggregator
from telemetry.event import Event, Severity
from telemetry.inventory import Cpu, GpuInfo, Inventory, Pcie
from telemetry.signals import Signals
from telemetry.window import Key, Sample, Window

START = 1_772_323_200  # a multiple of 300
UUID = "GPU-1"
GPU: Key = ("gpu", UUID)
BOOK = Rulebook.load()
SERVER = Inventory(
    "host",
    cpu=Cpu(threads=64),
    gpus=(
        GpuInfo(UUID, index=0, pcie=Pcie(max_generation=5, max_width=16)),
        GpuInfo("GPU-2", index=1, pcie=Pcie(max_generation=5, max_width=16)),
    ),
)


@dataclass(frozen=True)
class Told:
    """A transition, in seconds after the beginning."""

    rule: str
    raised: bool
    at: int
    event: Event

    @property
    def serious(self) -> bool:
        return self.event.severity is not Severity.INFO


def judged(windows: Iterable[Window], inventory: Inventory | None = SERVER) -> list[Told]:
    """The transitions that the shipped rules make of windows of both tiers."""
    alarm = Alarm(BOOK, "host")
    told: list[Told] = []
    begin: int | None = None
    for window in windows:
        begin = window.start if begin is None else begin
        for event in alarm.see([window], inventory, released=False):
            told.append(Told(event.rule or "", bool(event.raised), int(event.time) - begin, event))
    return told


def windows_of(samples: Iterable[Sample]) -> Iterator[Window]:
    """Both tiers, as the daemon makes them."""
    aggregator = Aggregator("host", Signals.load())
    for sample in samples:
        yield from aggregator.add(sample)
    yield from aggregator.flush()
