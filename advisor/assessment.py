"""Everything that is known and said of one server: what the commands and the report show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.finding import Finding
from advisor.phase import Segment
from telemetry.inventory import Inventory
from telemetry.states import Cause, State, WindowState
from telemetry.store import OwnerDay
from telemetry.window import Frame

if TYPE_CHECKING:
    from advisor.hardware_change import HardwareChange
    from advisor.money import Payback
    from advisor.pooling import PoolNeed


@dataclass(frozen=True, slots=True)
class Period:
    """[since, until) in Unix seconds."""

    since: int
    until: int

    @property
    def hours(self) -> float:
        """Length in hours."""
        return (self.until - self.since) / 3600


@dataclass(frozen=True, slots=True)
class Loss:
    """What held one GPU back, by cause and place: starvation, or what a busy GPU is told beside.

    `hours` are those of the windows, `lost_hours` the time lost within them where that is known.
    """

    state: State
    cause: Cause
    hours: float
    lost_hours: float | None
    confidence: float
    place: str | None
    bytes_per_second: float | None
    ceiling_bytes_per_second: float | None
    ceiling_source: str | None
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GpuHours:
    """Where the hours of one GPU went over a period; the states add up to the period.

    `causes` are hours of starved windows by cause, `lost_hours` the time lost within them;
    `losses` tell place, rate and evidence.
    """

    host: str
    gpu_uuid: str
    hours: dict[State, float]
    causes: dict[Cause, float]
    lost_hours: float
    coverage_ratio: float
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnerHours:
    """GPU-hours of one owner (unit, container, user, ...) by state."""

    owner: str
    owner_kind: str
    hours: dict[State, float]


@dataclass(slots=True)
class GpuTimeline:
    """One GPU over the period that is sized: its windows, their states and its phases."""

    frame: Frame
    states: list[WindowState]
    segments: list[Segment]


@dataclass(slots=True)
class Observations:
    """What was seen of one server over `period`, before anything is judged.

    `frames` holds the frames of every measurement but `gpu` by measurement.
    """

    host: str
    period: Period
    inventory: Inventory
    gpus: dict[str, GpuTimeline]
    frames: dict[str, list[Frame]]
    coverage_ratio: float
    covered_hours: float
    owner_days: tuple[OwnerDay, ...] = ()
    """Who used the GPUs on days of which single processes are no longer kept."""


@dataclass(frozen=True, slots=True)
class Work:
    """What all work of a server took in one stretch of 5 minutes.

    `cards` is in full GPUs of the kind that is there; None of either is not known.
    """

    start: int
    cards: float | None
    memory_bytes: float | None


@dataclass(frozen=True, slots=True)
class Assessment:
    """The answer for one server.

    `observations` are what it rests on, over the sized period; None where only the inventory is
    known. `work` is what sizing saw of the work, empty where its need is not known;
    `pool_need` the same with each job's memory, of an inference server. `payback` is told with
    the user's prices alone. `changed` is the last change of the hardware within the period: what
    was seen before it was not sized.
    """

    host: str
    inventory: Inventory
    told: Period
    sized: Period
    hours: tuple[GpuHours, ...]
    owners: tuple[OwnerHours, ...]
    segments: tuple[Segment, ...]
    findings: tuple[Finding, ...]
    observations: Observations | None = None
    work: tuple[Work, ...] = ()
    pool_need: PoolNeed | None = None
    payback: Payback | None = None
    changed: HardwareChange | None = None
