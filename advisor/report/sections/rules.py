"""The documented rules that spoke, in the guides' own words."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.message import say
from advisor.profiles import GUIDES, Rule
from advisor.report.figures import rule_of
from advisor.report.report import Report
from advisor.report.section import FleetSection


@dataclass(frozen=True, slots=True)
class Line:
    """One rule, and the guide that it stands in."""

    rule: Rule
    guide: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules in order of their id."""

    lines: tuple[Line, ...]


def build(report: Report) -> Rules | None:
    """The rules of all findings; no section where none spoke."""
    spoken = {
        rule_id
        for server in report.servers
        for finding in server.assessment.findings
        for rule_id in (finding.rule, *finding.rules)
    }
    rules = [rule for i in spoken if (rule := rule_of(i, report.profiles)) is not None]
    rules.sort(key=lambda r: r.id)
    return Rules(tuple(Line(r, GUIDES.get(r.guide, r.guide)) for r in rules)) if rules else None


SECTION = FleetSection("rules", 210, say("The rules used, and their sources"), build)
