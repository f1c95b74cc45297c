"""docs/profiles.md: every documented rule, its source, its status and how it is observed.

python -m advisor.profiles.page
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.profiles import ALL_PHASES, GUIDES, Profiles, Rule, Status
from advisor.sizing.quantities import QUANTITIES

_STATUS = {
    Status.ACTIVE: "may decide a finding",
    Status.ADVICE: "advises; never says under or over by itself",
    Status.REFERENCE: "told beside figures; never compared",
    Status.CONTRADICTED: "broken by its own arithmetic or another source; told, never used",
    Status.UNATTAINABLE: "cannot be had on the hardware that it names; told, never used",
    Status.NOT_OBSERVABLE: "cannot be seen from a server; kept as text",
}
_CONTRADICTION = re.compile(r"(C\d+): (.*?)(?= C\d+:|$)")


def page() -> str:
    """The page as Markdown."""
    return "\n".join(_lines(Profiles.load())) + "\n"


def _lines(profiles: Profiles) -> Iterator[str]:
    rules = profiles.rules
    yield "# The documented profiles"
    yield ""
    yield "Generated from `advisor/profiles/*.toml` (`make regen`). The sources are two guides:"
    yield ""
    for key, title in GUIDES.items():
        yield f"- **{key}**: {title}"
    yield ""
    yield "A rule's status says what it may do:"
    yield ""
    for status, meaning in _STATUS.items():
        count = sum(rule.status is status for rule in rules)
        yield f"- **{status.value}** ({count}): {meaning}"
    yield ""
    yield "A shortfall against a rule alone is *below the documented profile* in its row; a server"
    yield "is under only where something cannot fit or a symptom was seen."
    yield ""
    yield "| rule | says | phases | dimension | status | compared | how it is observed |"
    yield "|---|---|---|---|---|---|---|"
    for rule in rules:
        cells = (
            f'<a id="{rule.id.lower()}"></a>{rule.id}',
            rule.says,
            "all" if ALL_PHASES in rule.phases else ", ".join(rule.phases),
            rule.dimension.value,
            rule.status.value,
            _compared(rule),
            _observed(rule),
        )
        yield "| " + " | ".join(_cell(cell) for cell in cells) + " |"
    yield ""
    yield "## In the guides' own words"
    yield ""
    for rule in rules:
        yield f"- **{rule.id}** ({rule.guide}): «{rule.quote}»" + (
            f" {rule.note}" if rule.note else ""
        )
    yield ""
    yield "## Where the guides contradict each other, or themselves"
    yield ""
    for name, rule_id, text in sorted(_contradictions(rules), key=lambda c: (int(c[0][1:]), c[1])):
        yield f"- **{name}** ({rule_id}): {text}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _compared(rule: Rule) -> str:
    if rule.quantity is None or rule.operator is None or rule.value is None:
        return ""
    tolerance = f", {rule.tolerance:.0%} tolerance" if rule.tolerance else ""
    when = []
    if rule.when_parameters_at_least is not None:
        when.append(f"from {rule.when_parameters_at_least / 1e9:g}B parameters")
    if rule.when_parameters_at_most is not None:
        when.append(f"to {rule.when_parameters_at_most / 1e9:g}B parameters")
    if rule.when_job_gpus_at_least is not None:
        when.append(f"jobs on {rule.when_job_gpus_at_least} GPUs or more")
    narrowed = f" ({', '.join(when)})" if when else ""
    upper = "" if rule.at_most is None else f" (above {rule.at_most:g}: advice)"
    return (
        f"`{rule.quantity}` {rule.operator} {rule.value:g} {rule.unit or ''}{upper}{tolerance}"
        f"{narrowed}"
    )


def _observed(rule: Rule) -> str:
    if rule.observed is not None:
        return rule.observed
    if rule.quantity is not None:
        doc = QUANTITIES[rule.quantity].__doc__ or ""
        return " ".join(doc.split("\n\n")[0].split())
    if rule.status is Status.NOT_OBSERVABLE:
        return "not observed"
    return "not compared with anything that is measured"


def _contradictions(rules: tuple[Rule, ...]) -> Iterator[tuple[str, str, str]]:
    for rule in rules:
        for name, text in _CONTRADICTION.findall(rule.note or ""):
            yield name, rule.id, text


if __name__ == "__main__":
    print(page(), end="")
