"""GPU class: formats that the work needs, and cards that the guides would not choose for it."""

from __future__ import annotations

from dataclasses import replace

from advisor.finding import Basis, Dimension, Evidence, Finding, Verdict
from advisor.message import say
from advisor.sizing import documented
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion, settle

_DIMENSION = Dimension.GPU_CLASS
_BF16 = "R51"


def judge(case: Case) -> Finding:
    """Physical where BF16 work meets a card before Ampere; else what the guides advise."""
    opinions = [_physical(case, o) for o in documented.opinions(case, _DIMENSION)]
    opinions += _costly_for_inference(case)
    return settle(
        case,
        _DIMENSION,
        opinions,
        otherwise=say("the phase or the card is not known, so no class can be asked of it"),
    )


def _physical(case: Case, opinion: Opinion) -> Opinion:
    if opinion.rule != _BF16 or opinion.verdict is not Verdict.UNDER:
        return opinion
    advice = say("Run this work on Ampere or later, or in FP16.")
    if "bf16" not in case.precisions:
        return replace(opinion, verdict=Verdict.ADVICE, recommendation=advice)
    return replace(
        opinion,
        basis=Basis.PHYSICAL,
        reason=say("the work is in BF16 and the cards have no BF16 instructions"),
        confidence=case.thresholds.number("confidence", "physical"),
        recommendation=advice,
    )


def _costly_for_inference(case: Case) -> list[Opinion]:
    rule = case.profiles.rule("R24")
    models = [card.model for card in case.cards if card.model is not None]
    if not case.only_serves or not models:
        return []
    dear = [m for m in models if m.form == "sxm"]
    if not dear:
        return []
    return [
        Opinion(
            Verdict.ADVICE,
            Basis.DOCUMENTED,
            say(
                "{card} serves inference alone; the guides find L40S or RTX PRO 6000 cards"
                " more cost-effective for it",
                card=dear[0].name,
            ),
            case.thresholds.number("confidence", "advice"),
            rule=rule.id,
            evidence=(Evidence("gpu", "model", dear[0].name),),
            recommendation=say(
                "At the next purchase, let the measured need choose the card, not the brand."
            ),
        )
    ]
