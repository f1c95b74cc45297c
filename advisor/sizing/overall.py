"""The server's one verdict, from the findings of its dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.finding import Basis, Dimension, Finding, Verdict
from advisor.message import say
from advisor.sizing.case import Case
from advisor.sizing.opinion import abstention, too_short

_CAN_BE_OVER = (Dimension.GPU_COUNT, Dimension.GPU_CLASS, Dimension.VRAM)
_REAL = (Basis.PHYSICAL, Basis.MEASURED)


def judge(case: Case, findings: Sequence[Finding]) -> Finding:
    """Under by one physical or measured finding, over by GPUs or VRAM alone, else idle or right."""
    if case.observations is None:
        broken = [f for f in findings if _is(f, Verdict.UNDER, Basis.PHYSICAL)]
        if broken:
            return _by(broken, Verdict.UNDER)
        return abstention(
            case,
            Dimension.OVERALL,
            say("whether the hardware fits the work needs a day of samples"),
        )
    if not case.cards:
        return abstention(case, Dimension.OVERALL, say("the server has no GPU"))
    if case.too_short:
        return abstention(case, Dimension.OVERALL, too_short(case))
    under = [f for f in findings if _is(f, Verdict.UNDER, *_REAL)]
    if under:
        return _by(under, Verdict.UNDER)
    over = [f for f in findings if f.verdict is Verdict.OVER and f.dimension in _CAN_BE_OVER]
    if over:
        return _by(over, Verdict.OVER)
    idle = [f for f in findings if f.verdict is Verdict.IDLE]
    if idle:
        return _by(idle, Verdict.IDLE)
    sized = [f for f in findings if f.dimension in (Dimension.VRAM, Dimension.GPU_COUNT)]
    # What a guide advises tells nothing of the need.
    known = [
        f
        for f in sized
        if f.verdict is not Verdict.ABSTAIN
        and (f.verdict, f.basis) != (Verdict.ADVICE, Basis.DOCUMENTED)
    ]
    if not known:
        return abstention(
            case,
            Dimension.OVERALL,
            say("neither the need of GPUs nor that of their memory could be judged"),
        )
    return _by(known, Verdict.RIGHT)


def _is(finding: Finding, verdict: Verdict, *bases: Basis) -> bool:
    return finding.verdict is verdict and finding.basis in bases


def _by(deciding: Sequence[Finding], verdict: Verdict) -> Finding:
    """The overall finding that speaks with the voice of the most certain of those that decided."""
    best = max(deciding, key=lambda f: (f.basis is Basis.PHYSICAL, f.lost_ratio or 0, f.confidence))
    rules = dict.fromkeys(rule for f in (best, *deciding) for rule in f.rules)
    return Finding(
        host=best.host,
        scope="server",
        dimension=Dimension.OVERALL,
        verdict=verdict,
        reason=best.reason,
        confidence=best.confidence,
        coverage_ratio=best.coverage_ratio,
        basis=best.basis,
        phase=best.phase,
        rule=best.rule,
        rules=tuple(rules),
        evidence=best.evidence,
        recommendation=best.recommendation,
        saving=best.saving,
        gpu_hours_per_week=best.gpu_hours_per_week,
        cause=best.cause,
        lost_ratio=best.lost_ratio,
        demand=best.demand,
        step=best.step,
    )
