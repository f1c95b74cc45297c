"""The verdict on a server: in one sentence, then by dimension with evidence and rule."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.finding import Basis, Finding, Verdict
from advisor.hardware_change import HardwareChange
from advisor.message import Amount, Message, say
from advisor.profiles import Rule
from advisor.report import words
from advisor.report.figures import Figure, figures, rule_of
from advisor.report.hardware import facts
from advisor.report.report import Server
from advisor.report.section import ServerSection


@dataclass(frozen=True, slots=True)
class Row:
    """One dimension. `also` are the further rules that spoke."""

    finding: Finding
    dimension: Message
    label: Message
    mark: str
    tone: str
    basis: Message | None
    rule: Rule | None
    also: tuple[str, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class ServerVerdict:
    """The overall verdict, the hardware, and a row for each dimension that could be judged.

    `changed` is the last change of its hardware within the period; `also` are the dimensions beside
    the deciding one that have the same verdict in earnest.
    """

    server: Server
    overall: Finding | None
    verdict: Verdict
    label: Message
    mark: str
    basis: Message | None
    also: tuple[Message, ...]
    facts: tuple[tuple[Message, Message | Amount | str], ...]
    changed: HardwareChange | None
    rows: tuple[Row, ...]


def build(server: Server) -> ServerVerdict:
    """The verdict; a server that could not be judged at all has no rows."""
    overall = server.overall
    return ServerVerdict(
        server,
        overall,
        server.verdict,
        words.VERDICTS[server.verdict],
        words.MARKS[server.verdict],
        None if overall is None or overall.basis is None else words.BASES[overall.basis],
        tuple(
            words.DIMENSIONS[f.dimension]
            for f in server.findings
            if overall is not None
            and overall.verdict in (Verdict.UNDER, Verdict.OVER)
            and f.verdict is overall.verdict
            and f.basis is not Basis.DOCUMENTED
            and f.reason != overall.reason
        ),
        tuple(facts(server.assessment.inventory)),
        server.assessment.changed,
        tuple(_row(server, f) for f in server.findings if f.verdict is not Verdict.ABSTAIN),
    )


def _row(server: Server, finding: Finding) -> Row:
    return Row(
        finding,
        words.DIMENSIONS[finding.dimension],
        words.verdict(finding),
        words.MARKS[finding.verdict],
        words.tone(finding),
        None if finding.basis is None else words.BASES[finding.basis],
        rule_of(finding.rule, server.profiles),
        tuple(rule for rule in finding.rules if rule != finding.rule),
        figures(finding, server.profiles),
    )


SECTION = ServerSection("verdict", 10, say("Verdict"), build)
