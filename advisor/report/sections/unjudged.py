"""What could not be judged on a server, and how to tell it."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.finding import Verdict
from advisor.message import Message, say
from advisor.report import words
from advisor.report.report import Server
from advisor.report.section import ServerSection


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Dimensions with the reason why nothing is said of them."""

    rows: tuple[tuple[Message, Message], ...]


def build(server: Server) -> Unjudged | None:
    """The abstentions; no section where all was judged."""
    rows = tuple(
        (words.DIMENSIONS[f.dimension], f.reason)
        for f in server.findings
        if f.verdict is Verdict.ABSTAIN
    )
    return Unjudged(rows) if rows else None


SECTION = ServerSection("unjudged", 50, say("What could not be judged"), build)
