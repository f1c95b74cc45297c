"""GPU class: formats that the work needs, and cards that the guides would not choose for it."""

from __future__ import annotations

from dataclasses import replace

from advisor.finding import Basis, Dimension, Evidence, Finding, Step, Verdict
from advisor.message import Amount, say
from advisor.sizing import documented, well_used
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion, settle
from advisor.sizing.whatif import Replay, smaller_class

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
    """Cards of the H100 class that serve alone: over only where a smaller class would have done."""
    limits = case.thresholds
    models = [card.model for card in case.cards if card.model is not None]
    if not case.only_serves or not models:
        return []
    heavy = limits.number("class", "heavy_bandwidth")
    dear = [
        m
        for m in models
        if m.memory_type.startswith("HBM") and m.bandwidth_bytes_per_second >= heavy
    ]
    smaller = None if case.inventory.standby else smaller_class(case)
    if smaller is not None:
        return [_over(case, smaller, bool(dear))]
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
            limits.number("confidence", "advice"),
            rule="R24",
            evidence=(Evidence("gpu", "model", dear[0].name), *well_used.evidence(case)),
            recommendation=say(
                "At the next purchase, let the measured need choose the card, not the brand."
            ),
            step=Step.BUY,
        )
    ]


def _over(case: Case, smaller: Replay, heavy: bool) -> Opinion:
    limits, what, gpu = case.thresholds, smaller.what_if, smaller.option.gpu
    # The conversion rests on the option's published figures, which not all are confirmed.
    doubted = gpu is None or {"memory.gigabytes_per_second", "compute.dense_bf16_teraflops"} & set(
        gpu.unverified
    )
    sure = limits.number("confidence", "documented" if doubted else "right")
    return Opinion(
        Verdict.OVER,
        Basis.MEASURED,
        say(
            "{count} {card} would have served {share} of the windows, at {load} of its power at the"
            " peak ({worst} at the worst of the conversion)",
            count=what.count,
            card=what.gpu,
            share=Amount(what.served_ratio, "ratio"),
            load=Amount(what.peak_load_ratio, "ratio"),
            worst=Amount(what.peak_load_ratio_at_worst, "ratio"),
        ),
        sure,
        rule=what.rule,
        rules=("R24",) if heavy else (),
        evidence=(
            Evidence("peak load", "P99.5 on the smaller option", what.peak_load_ratio),
            Evidence(
                "peak load",
                "at the worst of the conversion",
                what.peak_load_ratio_at_worst,
                limits.number("headroom", "busy"),
            ),
        ),
        recommendation=say(
            "Move this load to {count} {card}, and use the {now} for work that needs it.",
            count=what.count,
            card=what.gpu,
            now=case.cards[0].name,
        ),
        step=Step.SMALLER_CLASS,
    )
