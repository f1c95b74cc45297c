"""Runs the series beside each rule, as vmalert-tool does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.alerts.alerts import Alerts, Seen
from agent.alerts.rule_series import Cell, Series
from agent.alerts.rulebook import Rule, Rulebook
from telemetry.state import WindowState

_BEGIN = 1_700_000_100  # a multiple of 300
_SUBJECTS = {
    "gpu": ("gpu", "GPU-series"),
    "engine": ("engine", "8000"),
    "host": ("host",),
    "mount": ("mount", "/series"),
    "agent": ("agent",),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a series brought: transitions as (what, seconds after its beginning)."""

    rule: Rule
    series: Series
    found: tuple[tuple[str, int], ...]

    @property
    def passed(self) -> bool:
        """Whether it is what was expected."""
        return self.found == self.series.expect


def run_series(book: Rulebook) -> Iterator[Outcome]:
    """Every series of every rule, each rule by itself."""
    for rule in book.rules:
        for series in rule.series:
            yield Outcome(rule, series, tuple(transitions(rule, series.cells)))


def transitions(rule: Rule, cells: tuple[Cell, ...]) -> Iterator[tuple[str, int]]:
    """What a rule makes of the windows of a series."""
    alerts = Alerts(Rulebook((rule,)), "series")
    key = _SUBJECTS[rule.scope]
    for i, cell in enumerate(cells):
        start = _BEGIN + i * rule.tier
        end = start + rule.tier
        for event in alerts.step(rule.tier, start, end, {key: _seen(rule, cell)}):
            yield "raise" if event.raised else "clear", end - _BEGIN


def _seen(rule: Rule, cell: Cell) -> Seen:
    if isinstance(cell, WindowState):
        return Seen({}, state=cell)
    return Seen({} if cell is None or rule.metric is None else {rule.metric: cell})


__all__ = ["Outcome", "run_series", "transitions"]
