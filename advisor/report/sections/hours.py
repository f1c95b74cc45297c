"""Where the GPU-hours went."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.message import Message, say
from advisor.report import words
from advisor.report.report import Report, worked
from advisor.report.section import FleetSection
from telemetry.states import Cause, State


@dataclass(frozen=True, slots=True)
class Part:
    """The hours of one state, and their share of all."""

    state: State
    label: Message
    hours: float
    share: float


@dataclass(frozen=True, slots=True)
class Hours:
    """All GPU-hours of the told period. `lost` are those that waited within a job, by cause."""

    total: float
    worked: float
    parts: tuple[Part, ...]
    causes: tuple[tuple[Message, float], ...]
    lost: float

    @property
    def share(self) -> float:
        """The share of the hours that did work."""
        return self.worked / self.total if self.total else 0.0


def build(report: Report) -> Hours | None:
    """The hours; no section where there was no GPU."""
    total = sum(report.states.values())
    if total <= 0:
        return None
    parts = tuple(
        Part(state, label, hours, hours / total)
        for state, label in words.STATES.items()
        if (hours := report.states.get(state, 0.0)) >= words.SHOWN_HOURS
    )
    gpus = [gpu for server in report.servers for gpu in server.assessment.hours]
    causes: dict[Cause, float] = {}
    for gpu in gpus:
        for cause, hours in gpu.causes.items():
            causes[cause] = causes.get(cause, 0.0) + hours
    ranked = sorted(((c, h) for c, h in causes.items() if h > 0), key=lambda pair: -pair[1])
    lost = sum(server.lost for server in report.servers)
    return Hours(
        total,
        worked(report.states, lost),
        parts,
        tuple((words.CAUSES[c], h) for c, h in ranked),
        lost,
    )


SECTION = FleetSection("hours", 30, say("Where the GPU-hours went"), build)
