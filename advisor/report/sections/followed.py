"""What became of the last report's advice, over all servers."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.message import say
from advisor.report.past import Outcome
from advisor.report.report import Report, Server
from advisor.report.section import FleetSection
from advisor.report.sections import changes

_SHOWN = 5
_NEWS_FIRST = (
    Outcome.TOO_FAR,
    Outcome.FOLLOWED,
    Outcome.PARTLY,
    Outcome.CHANGED,
    Outcome.GONE,
    Outcome.STANDS,
    Outcome.UNKNOWN,
)


@dataclass(frozen=True, slots=True)
class Line:
    """One recommendation of one server."""

    server: Server
    told: changes.Told


@dataclass(frozen=True, slots=True)
class Followed:
    """How many were followed, no longer hold or stand, and the first of them, news first."""

    total: int
    followed: int
    gone: int
    stand: int
    until: int
    lines: tuple[Line, ...]


def build(report: Report) -> Followed | None:
    """The advice of the last report; no section where no earlier report is known."""
    pasts = [server.past for server in report.servers if server.past is not None]
    if not pasts:
        return None
    lines = [Line(server, told) for server in report.servers for told in changes.advice(server)]
    lines.sort(key=lambda line: _NEWS_FIRST.index(line.told.outcome))

    def count(*outcomes: Outcome) -> int:
        return sum(line.told.outcome in outcomes for line in lines)

    return Followed(
        len(lines),
        count(Outcome.FOLLOWED, Outcome.PARTLY, Outcome.TOO_FAR, Outcome.CHANGED),
        count(Outcome.GONE),
        count(Outcome.STANDS),
        max(past.until for past in pasts),
        tuple(lines[:_SHOWN]),
    )


SECTION = FleetSection("followed", 38, say("Since the last report"), build)
