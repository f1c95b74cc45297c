"""The order of advice: engine, quantisation, consolidation, smaller class, fewer GPUs.

Buying comes last (the guide: «antes de añadir una segunda tarjeta, conviene comprobar que la
primera está bien exprimida»); what is broken is mended before anything is sized.
"""

from __future__ import annotations

from collections.abc import Iterable

from advisor.finding import Basis, Dimension, Finding, Step, Verdict


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """The findings of one server that recommend something, in the order in which to follow them.

    The overall finding, which repeats one of them, is left out.
    """
    advising = [
        f for f in findings if f.recommendation is not None and f.dimension is not Dimension.OVERALL
    ]
    return sorted(advising, key=_rank)


def _rank(finding: Finding) -> tuple[int, bool, bool, float, float]:
    step = finding.step or Step.REPAIR
    documented = finding.basis is Basis.DOCUMENTED
    advice, lost = finding.verdict is Verdict.ADVICE, finding.lost_ratio or 0.0
    return step.rank, documented, advice, -lost, -finding.confidence
