"""How the report is made, and what its words mean."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.assessment import Period
from advisor.message import Message, say
from advisor.report import words
from advisor.report.report import Report
from advisor.report.section import FleetSection


@dataclass(frozen=True, slots=True)
class Coverage:
    """What of a server's sized period its samples cover."""

    host: str
    sized: Period
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Method:
    """The meaning of each state, and the coverage of each server."""

    states: tuple[tuple[Message, Message], ...]
    coverage: tuple[Coverage, ...]


def build(report: Report) -> Method:
    """The method, and the periods that it was applied to."""
    return Method(
        tuple((label, words.MEANINGS[state]) for state, label in words.STATES.items()),
        tuple(
            Coverage(
                s.host,
                s.assessment.sized,
                None
                if s.assessment.observations is None
                else s.assessment.observations.coverage_ratio,
            )
            for s in report.servers
            if s.assessment.sized.until > s.assessment.sized.since
        ),
    )


SECTION = FleetSection("method", 200, say("Method and coverage"), build)
