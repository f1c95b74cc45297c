"""Interconnect between GPUs that work on one model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from advisor.finding import Basis, Dimension, Evidence, Finding, Verdict
from advisor.message import say
from advisor.sizing import documented
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion, settle

_DIMENSION = Dimension.INTERCONNECT


def judge(case: Case) -> Finding:
    """Documented only: asked where a job uses two cards or more, of cards that have NVLink."""
    opinions = [
        replace(o, recommendation=say("Join the cards by an NVLink bridge."))
        if o.verdict is Verdict.UNDER
        else o
        for o in documented.opinions(case, _DIMENSION)
    ]
    if case.demands and all(len(d.gpus) < 2 for d in case.demands):
        opinions.append(
            Opinion(
                Verdict.RIGHT,
                Basis.MEASURED,
                say("no job uses two GPUs together, so none needs a fast link"),
                case.thresholds.number("confidence", "right"),
            )
        )
    opinions += _unlinked(case)
    able = [card for card in case.cards if card.model is not None and card.model.has_nvlink]
    return settle(
        case,
        _DIMENSION,
        opinions,
        otherwise=say("whether a job uses several GPUs, or how they are linked, is not known")
        if able or not case.cards
        else say("these cards have no NVLink, so it is not asked of them"),
    )


def _unlinked(case: Case) -> Iterator[Opinion]:
    """A model on several cards that no NVLink joins, as the check last saw it."""
    count = case.gpus_of_one_model
    peers = [card.info.nvlink_peers for card in case.cards]
    if count is not None and count >= 2 and peers and all(p is not None and not p for p in peers):
        yield Opinion(
            Verdict.ADVICE,
            Basis.DOCUMENTED,
            say(
                "{count} GPUs work on one model and no NVLink joins them: what they exchange goes"
                " over PCIe",
                count=str(count),
            ),
            case.thresholds.number("confidence", "advice"),
            evidence=(Evidence("job_gpus", "peak", float(count), 1.0),),
        )
