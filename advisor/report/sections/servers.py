"""The list of all servers, those that need attention first."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.finding import Verdict
from advisor.message import Message, say
from advisor.report import words
from advisor.report.hardware import cards
from advisor.report.readings import mean_utilization
from advisor.report.report import Report, Server
from advisor.report.section import FleetSection


@dataclass(frozen=True, slots=True)
class Line:
    """One server. `share` is that of its GPU-hours that did work, `utilization` their mean.

    Both are told: a server may be at work around the clock and never busy.
    """

    server: Server
    verdict: Verdict
    label: Message
    mark: str
    cards: str
    share: float | None
    utilization: float | None
    reason: Message | None


@dataclass(frozen=True, slots=True)
class Servers:
    """All servers."""

    lines: tuple[Line, ...]


def build(report: Report) -> Servers | None:
    """The list; one server needs none."""
    return Servers(lines(report)) if len(report.servers) > 1 else None


def lines(report: Report) -> tuple[Line, ...]:
    """A line for each server."""
    return tuple(map(_line, report.servers))


def _line(server: Server) -> Line:
    total = sum(server.states.values())
    return Line(
        server,
        server.verdict,
        words.VERDICTS[server.verdict],
        words.MARKS[server.verdict],
        cards(server.assessment.inventory),
        server.worked / total if total > 0 else None,
        mean_utilization(server),
        None if server.overall is None else server.overall.reason,
    )


SECTION = FleetSection("servers", 40, say("The servers"), build)
