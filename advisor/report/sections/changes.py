"""What changed on a server since the last report, and what became of the advice in it."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.message import Amount, Message, say
from advisor.report import words
from advisor.report.hardware import facts
from advisor.report.past import Advice, Outcome, Past, followed
from advisor.report.report import Server
from advisor.report.section import ServerSection

_ENOUGH = 0.02
"""A share of the hours that moved by less than this is told as the same."""

OUTCOMES = {
    Outcome.FOLLOWED: say("followed"),
    Outcome.PARTLY: say("followed in part"),
    Outcome.TOO_FAR: say("followed too far"),
    Outcome.CHANGED: say("followed; not yet judged"),
    Outcome.GONE: say("no longer needed"),
    Outcome.STANDS: say("still stands"),
    Outcome.UNKNOWN: say("cannot be told"),
}
MEANINGS = {
    Outcome.FOLLOWED: say("the hardware was changed as advised, and it is no longer a fault"),
    Outcome.PARTLY: say("the hardware was changed as advised, and more of it is advised now"),
    Outcome.TOO_FAR: say("the hardware was changed as advised, and now it is the other extreme"),
    Outcome.CHANGED: say(
        "the hardware was changed as advised; the data do not tell yet if it fits"
    ),
    Outcome.GONE: say("what it rested on is no longer seen, with the same hardware"),
    Outcome.STANDS: say("what it rested on is still seen"),
    Outcome.UNKNOWN: say("this period does not tell"),
}
MARKS = {
    Outcome.FOLLOWED: "✓",
    Outcome.PARTLY: "◐",
    Outcome.TOO_FAR: "▼",
    Outcome.CHANGED: "◔",
    Outcome.GONE: "✓",
    Outcome.STANDS: "○",
    Outcome.UNKNOWN: "?",
}
TONES = {
    Outcome.FOLLOWED: "right",
    Outcome.PARTLY: "idle",
    Outcome.TOO_FAR: "under",
    Outcome.CHANGED: "abstain",
    Outcome.GONE: "right",
    Outcome.STANDS: "idle",
    Outcome.UNKNOWN: "abstain",
}
Shown = Message | Amount | str


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is not what it was."""

    what: Message
    then: Shown
    now: Shown


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one recommendation; `then` and `now` are the hardware that it was about."""

    advice: Advice
    dimension: Message
    outcome: Outcome
    label: Message
    meaning: Message
    mark: str
    tone: str
    then: Shown | None
    now: Shown | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes since the report of `past`, and its advice."""

    past: Past
    changes: tuple[Change, ...]
    advice: tuple[Told, ...]


def build(server: Server) -> Changes | None:
    """The comparison; no section where no earlier report is known."""
    past = server.past
    if past is None:
        return None
    return Changes(past, tuple(_changes(server, past)), advice(server))


def advice(server: Server) -> tuple[Told, ...]:
    """What became of the advice of the last report; nothing where there is none."""
    if server.past is None:
        return ()
    assessment = server.assessment
    return tuple(
        Told(
            f.advice,
            words.DIMENSIONS[f.advice.dimension],
            f.outcome,
            OUTCOMES[f.outcome],
            MEANINGS[f.outcome],
            MARKS[f.outcome],
            TONES[f.outcome],
            f.then,
            f.now,
        )
        for f in followed(server.past, assessment.inventory, assessment.findings)
    )


def _changes(server: Server, past: Past) -> list[Change]:
    found = []
    if past.verdict is not server.verdict:
        found.append(
            Change(
                say("The server as a whole"),
                words.VERDICTS[past.verdict],
                words.VERDICTS[server.verdict],
            )
        )
    then = {what.template: shown for what, shown in facts(past.inventory)}
    for what, shown in facts(server.assessment.inventory):
        before = then.get(what.template)
        if before is not None and before != shown:
            found.append(Change(what, before, shown))
    total = sum(server.states.values())
    if past.total > 0 and total > 0:
        before_share, share = past.worked / past.total, server.worked / total
        if abs(share - before_share) >= _ENOUGH:
            found.append(
                Change(
                    say("GPU-hours that did work"),
                    Amount(before_share, "ratio"),
                    Amount(share, "ratio"),
                )
            )
        if abs(total - past.total) >= 1:
            found.append(
                Change(say("GPU-hours"), Amount(past.total, "hours"), Amount(total, "hours"))
            )
        if abs(server.lost - past.lost) >= 1:
            found.append(
                Change(
                    say("GPU-hours lost waiting"),
                    Amount(past.lost, "hours"),
                    Amount(server.lost, "hours"),
                )
            )
    return found


SECTION = ServerSection("changes", 15, say("Since the last report"), build)
