"""The mutation run: each documented rule that is checked gets its operator flipped, and a range
that it names loses its upper end.

A rule whose flipping no staged server notices is not tested. `python -m tests.staged.mutation`
prints the table.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.profiles import Profiles, Rule, Status
from advisor.sizing import judge
from advisor.sizing.case import Case
from tests.staged import staging

KEPT = ("past", "replays", "busy_sums", "_seconds", "ruled_phases")
FLIPPED = {">=": "<", ">": "<=", "<=": ">", "<": ">="}


def rules() -> list[Rule]:
    """The rules that have an operator and may speak."""
    spoken = (Status.ACTIVE, Status.ADVICE)
    return [r for r in Profiles.load().rules if r.operator is not None and r.status in spoken]


def mutants(rule: Rule) -> dict[str, Rule]:
    """The rule made wrong, by what was done to it."""
    assert rule.operator is not None
    flipped = FLIPPED[rule.operator]
    made = {flipped: replace(rule, operator=flipped)}
    if rule.at_most is not None:
        made[f"no end at {rule.at_most:g}"] = replace(rule, at_most=None)
    return made


def broken_by(rule: Rule, wrong: Rule) -> str | None:
    """The first staged server whose expectations fail with the wrong rule, None where none."""
    profiles = Profiles(tuple(wrong if r.id == rule.id else r for r in Profiles.load().rules))
    for name in _likely_first(rule):
        findings = judge(with_profiles(staging.case(name), profiles))
        if any(row.against(findings) for row in staging.load(name).expected):
            return name
    return None


def with_profiles(case: Case, profiles: Profiles) -> Case:
    """The same server held against other rules; what was learned of it is kept."""
    other = replace(case, profiles=profiles)
    other.__dict__.update({k: v for k, v in case.__dict__.items() if k in KEPT})
    return other


def _likely_first(rule: Rule) -> list[str]:
    """Staged servers that name the rule, those whose purpose it speaks of, then all others."""

    def distance(name: str) -> tuple[int, str]:
        staged = staging.load(name)
        if any(rule.id in (row.rule, *row.also) for row in staged.expected):
            return 0, name
        return (1 if staged.scenario.server.purpose in rule.phases else 2), name

    return sorted(staging.names(), key=distance)


def main() -> int:
    """Prints the table; 1 where a flipped rule breaks nothing."""
    survivors = 0
    print("| rule | status | quantity | operator | flipped | breaks |")
    print("|---|---|---|---|---|---|")
    for rule in rules():
        for made, wrong in mutants(rule).items():
            name = broken_by(rule, wrong)
            survivors += name is None
            print(
                f"| {rule.id} | {rule.status.value} | {rule.quantity} | {rule.operator} |"
                f" {made} | {name or 'NOTHING'} |",
                flush=True,
            )
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
