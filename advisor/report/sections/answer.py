"""The answer in one row: how many servers are too big, too small, right, idle or not known."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.finding import Verdict
from advisor.message import Message, say
from advisor.report import words
from advisor.report.report import Report, Server
from advisor.report.section import FleetSection

_ORDER = (Verdict.OVER, Verdict.UNDER, Verdict.RIGHT, Verdict.IDLE, Verdict.ABSTAIN)
_NAMED = 3

NOTHING = say(
    "No server was recorded in this period."
    " Once an agent has run for a day, its server stands here."
)


@dataclass(frozen=True, slots=True)
class Count:
    """The servers of one verdict: the first few, and how many more."""

    verdict: Verdict
    label: Message
    mark: str
    servers: tuple[Server, ...]

    @property
    def named(self) -> tuple[Server, ...]:
        """Those that are named."""
        return self.servers[:_NAMED]

    @property
    def more(self) -> int:
        """How many are not."""
        return max(0, len(self.servers) - _NAMED)


@dataclass(frozen=True, slots=True)
class Answer:
    """One count for each verdict, zero included."""

    counts: tuple[Count, ...]
    servers: int
    nothing: Message = NOTHING


def build(report: Report) -> Answer:
    """The counts; a server with advice alone counts as right."""
    by_verdict: dict[Verdict, list[Server]] = {verdict: [] for verdict in _ORDER}
    for server in report.servers:
        verdict = Verdict.RIGHT if server.verdict is Verdict.ADVICE else server.verdict
        by_verdict[verdict].append(server)
    counts = tuple(
        Count(v, words.VERDICTS[v], words.MARKS[v], tuple(found)) for v, found in by_verdict.items()
    )
    return Answer(counts, len(report.servers))


SECTION = FleetSection("answer", 10, say("Do the servers fit their work?"), build)
