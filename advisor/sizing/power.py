"""Power: the declared feed against what the cards may draw."""

from __future__ import annotations

from dataclasses import replace

from advisor.finding import Dimension, Finding, Verdict
from advisor.message import say
from advisor.sizing import documented
from advisor.sizing.case import Case
from advisor.sizing.opinion import settle

_DIMENSION = Dimension.POWER


def judge(case: Case) -> Finding:
    """Documented: the feed carries at least the sum of the cards' power limits."""
    opinions = [
        replace(o, recommendation=say("Plan a stronger feed, or lower the cards' power limits."))
        if o.verdict is Verdict.UNDER
        else o
        for o in documented.opinions(case, _DIMENSION)
    ]
    return settle(
        case,
        _DIMENSION,
        opinions,
        otherwise=documented.unsaid(
            case,
            _DIMENSION,
            say(
                "the power feed is not known; give power_feed_watts in the configuration's"
                " [server] section"
            ),
        ),
    )
