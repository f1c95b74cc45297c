"""What to do first: the recommendations, ranked by the GPU-hours that they pay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor.assessment import Assessment
from advisor.finding import Basis, Dimension, Finding, Verdict
from advisor.report.report import Report, Server
from telemetry.states import State

WEEK_HOURS = 168.0


@dataclass(frozen=True, slots=True)
class Action:
    """One recommendation: what it pays a week in GPU-hours, None where that is not known.

    `frees` tells GPU-hours that other work could have from those that this work gets back.
    """

    server: Server
    finding: Finding
    gpu_hours_per_week: float | None
    frees: bool


def actions(report: Report) -> list[Action]:
    """All recommendations, those that pay most first, each hour counted once a server.

    What was measured or cannot work comes before what a guide alone asks for; then hours times
    confidence decide.
    """
    found = [action for server in report.servers for action in _of(server)]
    found.sort(key=_rank)
    kept: list[Action] = []
    spent: set[tuple[int, str]] = set()
    for action in found:
        key = action.server.number, _pot(action)
        if key not in spent:
            spent.add(key)
            kept.append(action)
    return kept


def _of(server: Server) -> Iterator[Action]:
    for finding in server.findings:
        if finding.recommendation is not None and finding.verdict not in (
            Verdict.RIGHT,
            Verdict.ABSTAIN,
        ):
            hours = gpu_hours_per_week(server.assessment, finding)
            frees = finding.verdict is not Verdict.UNDER and finding.lost_ratio is None
            yield Action(server, finding, hours, frees)


def _pot(action: Action) -> str:
    """What an action draws its hours from: the same hours are not promised twice."""
    if action.finding.cause is not None:
        return action.finding.cause
    if action.frees and action.gpu_hours_per_week is not None:
        return "free hours"
    return action.finding.dimension.value


def _rank(action: Action) -> tuple[int, float, float, str]:
    finding = action.finding
    real = finding.basis in (Basis.PHYSICAL, Basis.MEASURED)
    grave = real and finding.verdict in (Verdict.UNDER, Verdict.OVER, Verdict.IDLE)
    tier = 0 if grave else 1 if real else 2
    paid = (action.gpu_hours_per_week or 0.0) * finding.confidence
    return tier, -paid, -finding.confidence, action.server.host


def gpu_hours_per_week(assessment: Assessment, finding: Finding) -> float | None:
    """What following a finding would pay a week, by what was seen; None where it does not tell."""
    if finding.gpu_hours_per_week is not None:
        return finding.gpu_hours_per_week
    week = WEEK_HOURS / assessment.told.hours if assessment.told.hours > 0 else 0.0
    by_state: dict[State, float] = {}
    for gpu in assessment.hours:
        for state, hours in gpu.hours.items():
            by_state[state] = by_state.get(state, 0.0) + hours
    if finding.lost_ratio is not None:
        live = by_state.get(State.BUSY, 0.0) + by_state.get(State.STARVED, 0.0)
        return finding.lost_ratio * live * week
    if finding.dimension is Dimension.USAGE and finding.verdict is Verdict.IDLE:
        idle = (State.IDLE_FREE, State.IDLE_HELD, State.ORPHAN_HELD, State.STUCK)
        return sum(by_state.get(s, 0.0) for s in idle) * week
    return None
