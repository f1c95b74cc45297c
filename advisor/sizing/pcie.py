"""PCIe: each card's link, as seen under load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from advisor.finding import Basis, Dimension, Evidence, Finding, Verdict
from advisor.message import say
from advisor.sizing import documented
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion, settle

_DIMENSION = Dimension.PCIE
_RULE = "R30"
"""The rule of full PCIe width; a link below what its slot allows is its plainest breach."""
_ADVICE = say("Look at slot, riser and firmware settings: the link is below what the card has.")


def judge(case: Case) -> Finding:
    """Documented: the best of generation 5 and the card's own, at full width."""
    opinions = [
        replace(o, recommendation=_ADVICE) if o.verdict is Verdict.UNDER else o
        for o in documented.opinions(case, _DIMENSION)
    ]
    opinions += _narrow(case)
    return settle(
        case,
        _DIMENSION,
        opinions,
        otherwise=say("the PCIe links of the cards under load are not known"),
    )


def _narrow(case: Case) -> Iterator[Opinion]:
    """Cards on fewer lanes than card and slot allow: a bad contact, a riser or a setting.

    Lanes alone: a link that is idle lowers its generation by itself, and keeps its lanes.
    """
    for card in case.cards:
        link = card.info.pcie
        if link is None or link.width is None or link.max_width is None:
            continue
        allowed = min(link.max_width, link.slot_max_width or link.max_width)
        if link.width < allowed:
            yield Opinion(
                Verdict.UNDER,
                Basis.DOCUMENTED,
                say(
                    "GPU {gpu} runs on {width} PCIe lanes of the {allowed} that card and slot"
                    " allow",
                    gpu=str(card.info.index if card.info.index is not None else card.info.uuid),
                    width=str(link.width),
                    allowed=str(allowed),
                ),
                case.thresholds.number("confidence", "documented"),
                rule=_RULE,
                precedence=1,
                evidence=(Evidence("pcie_link_width", "inventory", link.width, allowed),),
                recommendation=_ADVICE,
            )
