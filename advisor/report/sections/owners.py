"""Whose the GPU-hours were."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.message import Message, say
from advisor.processes import UNKNOWN_OWNER
from advisor.report import words
from advisor.report.report import Report, added
from advisor.report.section import FleetSection
from telemetry.states import State

_SHOWN = 5
_HELD = (State.STUCK, State.ORPHAN_HELD, State.IDLE_HELD)


@dataclass(frozen=True, slots=True)
class Owner:
    """Hours of one owner: that computed, that were kept waiting, that were held for nothing."""

    name: Message | str
    kind: Message | str
    worked: float
    waited: float
    held: float


@dataclass(frozen=True, slots=True)
class Owners:
    """Those with most hours, and how many more there are."""

    first: tuple[Owner, ...]
    more: int


def build(report: Report) -> Owners | None:
    """The owners; no section where none is known."""
    owners = _owners(report)
    return Owners(tuple(owners[:_SHOWN]), max(0, len(owners) - _SHOWN)) if owners else None


def _owners(report: Report) -> list[Owner]:
    by_owner: dict[tuple[str, str], list[dict[State, float]]] = {}
    for server in report.servers:
        for owner in server.assessment.owners:
            by_owner.setdefault((owner.owner, owner.owner_kind), []).append(owner.hours)
    found = []
    for (name, kind), parts in by_owner.items():
        hours = added(parts)
        known = (name, kind) != UNKNOWN_OWNER
        line = Owner(
            name if known else say("owner not known"),
            words.OWNER_KINDS.get(kind, kind) if known else "",
            hours.get(State.BUSY, 0.0),
            hours.get(State.STARVED, 0.0),
            sum(hours.get(s, 0.0) for s in _HELD),
        )
        if line.worked + line.waited + line.held > 0:
            found.append(line)
    return sorted(found, key=lambda o: (-o.worked - o.waited - o.held, str(o.name)))


SECTION = FleetSection("owners", 35, say("Whose hours they were"), build)
