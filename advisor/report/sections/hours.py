"""Where the GPU-hours went, and whose they were."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.message import Message, say
from advisor.report import words
from advisor.report.report import Report, added, worked
from advisor.report.section import FleetSection
from telemetry.states import Cause, State

_OWNERS_SHOWN = 5
_HELD = (State.STUCK, State.ORPHAN_HELD, State.IDLE_HELD)


@dataclass(frozen=True, slots=True)
class Part:
    """The hours of one state, and their share of all."""

    state: State
    label: Message
    hours: float
    share: float


@dataclass(frozen=True, slots=True)
class Owner:
    """Hours of one owner: that computed, that were kept waiting, that were held for nothing."""

    name: str
    kind: Message | str
    worked: float
    waited: float
    held: float


@dataclass(frozen=True, slots=True)
class Hours:
    """All GPU-hours of the told period. `lost` are those that waited within a job, by cause."""

    total: float
    worked: float
    parts: tuple[Part, ...]
    causes: tuple[tuple[Message, float], ...]
    lost: float
    owners: tuple[Owner, ...]
    owners_more: int

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
        if (hours := report.states.get(state, 0.0)) > 0
    )
    gpus = [gpu for server in report.servers for gpu in server.assessment.hours]
    causes: dict[Cause, float] = {}
    for gpu in gpus:
        for cause, hours in gpu.causes.items():
            causes[cause] = causes.get(cause, 0.0) + hours
    ranked = sorted(((c, h) for c, h in causes.items() if h > 0), key=lambda pair: -pair[1])
    owners = _owners(report)
    lost = sum(server.lost for server in report.servers)
    return Hours(
        total,
        worked(report.states, lost),
        parts,
        tuple((words.CAUSES[c], h) for c, h in ranked),
        lost,
        tuple(owners[:_OWNERS_SHOWN]),
        max(0, len(owners) - _OWNERS_SHOWN),
    )


def _owners(report: Report) -> list[Owner]:
    by_owner: dict[tuple[str, str], list[dict[State, float]]] = {}
    for server in report.servers:
        for owner in server.assessment.owners:
            by_owner.setdefault((owner.owner, owner.owner_kind), []).append(owner.hours)
    found = []
    for (name, kind), parts in by_owner.items():
        hours = added(parts)
        line = Owner(
            name,
            words.OWNER_KINDS.get(kind, kind),
            hours.get(State.BUSY, 0.0),
            hours.get(State.STARVED, 0.0),
            sum(hours.get(s, 0.0) for s in _HELD),
        )
        if line.worked + line.waited + line.held > 0:
            found.append(line)
    return sorted(found, key=lambda o: (-o.worked - o.waited - o.held, o.name))


SECTION = FleetSection("hours", 30, say("Where the GPU-hours went"), build)
