"""The three actions that pay most: what each frees or needs, and how sure we are."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.message import Amount, Message, say
from advisor.report import words
from advisor.report.payoff import Action, actions
from advisor.report.report import Report
from advisor.report.section import FleetSection

SHOWN = 3
MORE_ONE = "{n} more recommendation stands with its server."
MORE_MANY = "{n} more recommendations stand with their servers."


@dataclass(frozen=True, slots=True)
class Told:
    """One action with its words."""

    action: Action
    dimension: Message
    basis: Message | None
    pays: Message | None


@dataclass(frozen=True, slots=True)
class Actions:
    """The first few, and how many more stand on the servers' own pages."""

    first: tuple[Told, ...]
    more: int


def build(report: Report) -> Actions | None:
    """The actions; no section where no server was assessed."""
    if not report.servers:
        return None
    ranked = actions(report)
    first = tuple(
        Told(
            action,
            words.DIMENSIONS[action.finding.dimension],
            None if action.finding.basis is None else words.BASES[action.finding.basis],
            _pays(action),
        )
        for action in ranked[:SHOWN]
    )
    return Actions(first, max(0, len(ranked) - SHOWN))


def _pays(action: Action) -> Message | None:
    hours = action.gpu_hours_per_week
    if not hours:
        return None
    amount = Amount(hours, "hours")
    if action.frees:
        return say("frees {hours} of GPU a week", hours=amount)
    return say("gives back {hours} of GPU a week", hours=amount)


SECTION = FleetSection("actions", 20, say("What to do first"), build)
