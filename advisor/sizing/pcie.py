"""PCIe: each card's link, as seen under load."""

from __future__ import annotations

from dataclasses import replace

from advisor.finding import Dimension, Finding, Verdict
from advisor.message import say
from advisor.sizing import documented
from advisor.sizing.case import Case
from advisor.sizing.opinion import settle

_DIMENSION = Dimension.PCIE


def judge(case: Case) -> Finding:
    """Documented: the best of generation 5 and the card's own, at full width."""
    advice = say("Look at slot, riser and firmware settings: the link is below what the card has.")
    opinions = [
        replace(o, recommendation=advice) if o.verdict is Verdict.UNDER else o
        for o in documented.opinions(case, _DIMENSION)
    ]
    return settle(
        case,
        _DIMENSION,
        opinions,
        otherwise=say("the PCIe links of the cards under load are not known"),
    )
