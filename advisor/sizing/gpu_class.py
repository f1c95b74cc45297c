"""GPU class: formats that the work needs, and cards that the guides would not choose for it."""

from __future__ import annotations

from dataclasses import replace

from advisor.finding import Basis, Dimension, Evidence, Finding, Verdict
from advisor.message import say
from advisor.sizing import documented
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion, settle

_DIMENSION = Dimension.GPU_CLASS
_RUN_ELSEWHERE = say("Run this work on Ampere or later, or in FP16.")


def judge(case: Case) -> Finding:
    """Physical where BF16 work meets a card before Ampere; else what the guides advise."""
    opinions = [_advice(o) for o in documented.opinions(case, _DIMENSION)]
    opinions += _no_bf16(case)
    opinions += _costly_for_inference(case)
    return settle(
        case,
        _DIMENSION,
        opinions,
        otherwise=say("the phase or the card is not known, so no class can be asked of it"),
    )


def _advice(opinion: Opinion) -> Opinion:
    """Without BF16 work in sight, a card that lacks BF16 is not yet at fault."""
    if opinion.verdict is not Verdict.UNDER:
        return opinion
    return replace(opinion, verdict=Verdict.ADVICE, recommendation=_RUN_ELSEWHERE)


def _no_bf16(case: Case) -> list[Opinion]:
    rule = case.profiles.rule("R51")
    value = documented.quantity(case, rule)
    if "bf16" not in case.precisions or value is None or rule.met(value):
        return []
    return [
        Opinion(
            Verdict.UNDER,
            Basis.PHYSICAL,
            say("the work is in BF16 and the cards have no BF16 instructions"),
            case.thresholds.number("confidence", "physical"),
            rule=rule.id,
            evidence=(Evidence("compute_capability", "inventory", value, rule.value),),
            recommendation=_RUN_ELSEWHERE,
        )
    ]


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
