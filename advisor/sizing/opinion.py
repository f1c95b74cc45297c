"""Opinions on a dimension, and how one finding is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.finding import Basis, Demand, Dimension, Evidence, Finding, Step, Verdict
from advisor.message import Amount, Message, say
from advisor.sizing.case import Case

# The strongest reason speaks first; among equals, short comes before too much.
_PRECEDENCE = (
    (Verdict.UNDER, Basis.PHYSICAL),
    (Verdict.UNDER, Basis.MEASURED),
    (Verdict.IDLE, Basis.MEASURED),
    (Verdict.OVER, Basis.PHYSICAL),
    (Verdict.OVER, Basis.MEASURED),
    (Verdict.UNDER, Basis.DOCUMENTED),
    (Verdict.OVER, Basis.DOCUMENTED),
    (Verdict.ADVICE, Basis.PHYSICAL),
    (Verdict.ADVICE, Basis.MEASURED),
    (Verdict.ADVICE, Basis.DOCUMENTED),
    (Verdict.RIGHT, Basis.PHYSICAL),
    (Verdict.RIGHT, Basis.MEASURED),
    (Verdict.RIGHT, Basis.DOCUMENTED),
)


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one rule or one measurement has to say of a dimension."""

    verdict: Verdict
    basis: Basis
    reason: Message
    confidence: float
    rule: str | None = None
    evidence: tuple[Evidence, ...] = ()
    recommendation: Message | None = None
    saving: Message | None = None
    gpu_hours_per_week: float | None = None
    cause: str | None = None
    lost_ratio: float | None = None
    demand: Demand | None = None
    rules: tuple[str, ...] = ()
    precedence: int = 5
    step: Step | None = None


def settle(
    case: Case, dimension: Dimension, opinions: Sequence[Opinion], *, otherwise: Message
) -> Finding:
    """The finding of a dimension: the opinion that weighs most, or an abstention.

    `otherwise` says why nothing can be said, and what would help, where there is no opinion.
    """
    if not opinions:
        return abstention(case, dimension, otherwise)
    ordered = sorted(opinions, key=_order)
    best = ordered[0]
    # A measurement names the documented rule that says the same, where there is one.
    agreeing = (o.rule for o in ordered if o.verdict is best.verdict and o.rule is not None)
    rule = best.rule or next(agreeing, None)
    spoken = dict.fromkeys(
        spoke for o in ordered for spoke in (o.rule, *o.rules) if spoke is not None
    )
    verdict, reason = best.verdict, best.reason
    if verdict is Verdict.OVER and case.short_of_a_week:
        verdict = Verdict.ADVICE
    phase = case.main_phase
    return Finding(
        host=case.host,
        scope="server",
        dimension=dimension,
        verdict=verdict,
        reason=reason,
        confidence=round(min(best.confidence, case.confidence_cap), 2),
        coverage_ratio=round(case.coverage_ratio, 4),
        basis=best.basis,
        phase=None if phase is None else phase.value,
        rule=rule,
        rules=tuple(spoken),
        evidence=best.evidence,
        recommendation=best.recommendation,
        saving=best.saving,
        gpu_hours_per_week=best.gpu_hours_per_week,
        cause=best.cause,
        lost_ratio=None if best.lost_ratio is None else round(best.lost_ratio, 4),
        demand=best.demand,
        step=None if best.recommendation is None else best.step or _step(best),
    )


def _step(opinion: Opinion) -> Step:
    """What is short is bought, where nothing cheaper is named; else something is mended."""
    match opinion.verdict:
        case Verdict.UNDER:
            return Step.BUY
        case Verdict.OVER:
            return Step.FEWER_GPUS
        case _:
            return Step.REPAIR


def _order(opinion: Opinion) -> tuple[int, int, float]:
    rank = _PRECEDENCE.index((opinion.verdict, opinion.basis))
    return rank, opinion.precedence, -opinion.confidence


def abstention(case: Case, dimension: Dimension, reason: Message) -> Finding:
    """A finding that says why nothing is said."""
    return Finding(
        host=case.host,
        scope="server",
        dimension=dimension,
        verdict=Verdict.ABSTAIN,
        reason=reason,
        confidence=0.0,
        coverage_ratio=round(case.coverage_ratio, 4),
    )


def too_short(case: Case) -> Message:
    """Why nothing is said where too little was seen."""
    assert case.observations is not None
    return say(
        "only {hours} were covered ({share} of the period); at least 24 h and 60 % are needed",
        hours=Amount(case.observations.covered_hours, "hours"),
        share=Amount(case.coverage_ratio, "ratio"),
    )
