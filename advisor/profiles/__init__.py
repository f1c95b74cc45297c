"""The documented rules of each phase, as data with their source (`*.toml` beside this file)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from importlib import resources
from typing import Any

from advisor.finding import Dimension, Verdict
from advisor.phase import Phase

ALL_PHASES = "*"

GUIDES = {
    "servers": "«Servidores GPU: entrenamiento vs inferencia IA»",
    "vps": "«GPU VPS para entrenamiento e inferencia de IA: guía práctica 2026»",
}


class Status(StrEnum):
    """Whether a rule may decide, advises only, or is told without being used."""

    ACTIVE = "active"
    ADVICE = "advice"
    REFERENCE = "reference"
    CONTRADICTED = "contradicted"
    UNATTAINABLE = "unattainable"
    NOT_OBSERVABLE = "not observable"


@dataclass(frozen=True, slots=True)
class Rule:
    """One documented rule: `quantity operator value`.

    `quantity` is a name of `advisor.sizing.quantities`; a rule without one is kept as text.
    `at_most` is the upper end of a rule that names a range; more than that is advice.
    `tolerance` is the share by which the value may be missed (marketed against usable sizes).
    `when_*` narrow the rule to jobs of a size; an unknown size means that the rule abstains.
    `breach` is what a breach means: under, over or advice. Of rules that say the same of one
    dimension, that of the lowest `precedence` decides. `observed` says how a rule without a
    quantity is seen.
    """

    id: str
    says: str
    guide: str
    quote: str
    phases: tuple[str, ...]
    dimension: Dimension
    status: Status
    quantity: str | None = None
    operator: str | None = None
    value: float | None = None
    at_most: float | None = None
    unit: str | None = None
    tolerance: float = 0.0
    breach: Verdict = Verdict.ADVICE
    when_parameters_at_least: float | None = None
    when_parameters_at_most: float | None = None
    when_job_gpus_at_least: int | None = None
    precedence: int = 5
    note: str | None = None
    observed: str | None = None

    def applies_to(self, phase: Phase) -> bool:
        """Whether the rule speaks of a phase."""
        return ALL_PHASES in self.phases or phase.value in self.phases

    def met(self, quantity: float) -> bool:
        """Whether a value of the rule's quantity satisfies it."""
        assert self.value is not None
        slack = abs(self.value) * self.tolerance
        match self.operator:
            case ">=":
                return quantity >= self.value - slack
            case ">":
                return quantity > self.value
            case "<=":
                return quantity <= self.value + slack
            case "<":
                return quantity < self.value
            case "==":
                return abs(quantity - self.value) <= slack
        raise ValueError(f"{self.id}: unknown operator {self.operator!r}")

    def beyond(self, quantity: float) -> bool:
        """Whether a value of the rule's quantity lies above the range that it names."""
        return self.at_most is not None and quantity > self.at_most


@dataclass(frozen=True)
class Profiles:
    """All documented rules."""

    rules: tuple[Rule, ...]

    @classmethod
    def load(cls) -> Profiles:
        """The rules that Talla ships. Raises ValueError naming file and rule of a malformed one."""
        rules: list[Rule] = []
        folder = resources.files("advisor.profiles")
        for entry in sorted(folder.iterdir(), key=lambda e: e.name):
            if entry.name.endswith(".toml"):
                tables = tomllib.loads(entry.read_text("utf-8"))["rule"]
                rules += [_rule(entry.name, table) for table in tables]
        return cls(tuple(sorted(rules, key=lambda r: r.id)))

    @cached_property
    def _by_id(self) -> Mapping[str, Rule]:
        return {rule.id: rule for rule in self.rules}

    def rule(self, rule_id: str) -> Rule:
        """The rule of that id. Raises KeyError where there is none."""
        return self._by_id[rule_id]

    def checkable(self, dimension: Dimension, phases: Iterable[Phase]) -> list[Rule]:
        """The rules of a dimension, with a quantity, that speak of any of the phases."""
        wanted = set(phases)
        return [
            rule
            for rule in self.rules
            if rule.dimension is dimension
            and rule.quantity is not None
            and rule.status in (Status.ACTIVE, Status.ADVICE)
            and (ALL_PHASES in rule.phases or any(rule.applies_to(p) for p in wanted))
        ]


_FIELDS = {f.name for f in fields(Rule)}


def _rule(file: str, table: Mapping[str, Any]) -> Rule:
    name = table.get("id", "a rule without id")
    unknown = set(table) - _FIELDS
    if unknown:
        raise ValueError(f"{file}: {name}: unknown key {min(unknown)!r}")
    try:
        return Rule(
            **{
                **table,
                "phases": tuple(table["phases"]),
                "dimension": Dimension(table["dimension"]),
                "status": Status(table["status"]),
                "breach": Verdict(table.get("breach", "advice")),
            }
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file}: {name}: {error}") from error
