"""The figures of a finding, each with the unit that its metric has."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.finding import Evidence, Finding
from advisor.message import Amount, Message, say
from advisor.profiles import Profiles, Rule
from advisor.report import words
from telemetry.states import State

_SUFFIXES = (
    ("_bytes_per_second", "bytes/second"),
    ("_bits_per_second", "bits/second"),
    ("_bytes", "bytes"),
    ("_ratio", "ratio"),
    ("_watts", "watts"),
    ("_seconds", "s"),
    ("_hours", "hours"),
)

Shown = Amount | Message | str


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of evidence. `metric` is code (a metric's name), `statistic` words."""

    metric: str | Message
    statistic: Message
    value: Shown
    threshold: Shown | None


def figures(finding: Finding, profiles: Profiles) -> tuple[Figure, ...]:
    """The evidence of a finding, for people."""
    units = {rule.quantity: rule.unit for rule in profiles.rules if rule.quantity is not None}
    return tuple(_figure(e, units) for e in finding.evidence)


def rule_of(rule_id: str | None, profiles: Profiles) -> Rule | None:
    """The documented rule of an id; None where this version knows none of that id."""
    if rule_id is None:
        return None
    try:
        return profiles.rule(rule_id)
    except KeyError:
        return None


def _figure(evidence: Evidence, units: dict[str, str | None]) -> Figure:
    unit = _unit(evidence, units)
    threshold = evidence.threshold
    return Figure(
        words.STATES[State(evidence.metric)] if evidence.metric in list(State) else evidence.metric,
        say(evidence.statistic),
        _shown(evidence.value, unit),
        None if threshold is None else _shown(threshold, unit),
    )


def _unit(evidence: Evidence, units: dict[str, str | None]) -> str:
    if evidence.metric in units:
        unit = units[evidence.metric] or "count"
        return "times" if unit == "ratio" else unit
    if evidence.statistic == "GPU-hours":
        return "hours"
    if "share of" in evidence.statistic:
        return "ratio"
    if "sum over" in evidence.statistic or "windows" in evidence.statistic.split()[:1]:
        return "count"
    name = evidence.metric
    if evidence.statistic == "inventory" and name.endswith("_ratio"):
        return "times"
    return next((unit for suffix, unit in _SUFFIXES if name.endswith(suffix)), "count")


def _shown(value: float | str, unit: str) -> Shown:
    if isinstance(value, str):
        return say(value)
    if unit == "yes":
        return say("yes") if value >= 1.0 else say("no")
    return Amount(float(value), unit)
