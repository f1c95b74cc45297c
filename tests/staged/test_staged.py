"""Every staged server gets the verdicts that the guides ask for."""

from __future__ import annotations

import random

import pytest

from advisor.finding import Dimension
from advisor.profiles import GUIDES, Profiles
from advisor.sizing import judge
from tests.staged import staging

RULES = {rule.id for rule in Profiles.load().rules}


SHIPPED = (
    "chatbot_on_eight_h100",
    "lora_70b_on_four_h100_nvl",
    "lora_short_of_ram",
    "seventy_b_on_two_l40s",
    "training_as_documented",
    "training_behind_a_nas",
)
"""Those of the demonstration, which are judged each time; of the others a sample is."""
_OTHERS = [name for name in staging.names() if name not in SHIPPED]
_SAMPLE = {*SHIPPED, *random.Random(9).sample(_OTHERS, 8)}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in _SAMPLE else pytest.mark.long)
        for name in staging.names()
    ],
)
def test_a_staged_server_gets_the_verdicts_of_the_guides(name: str) -> None:
    findings = judge(staging.case(name))
    wrong = [line for row in staging.load(name).expected for line in row.against(findings)]
    assert not wrong, "\n".join(wrong)
    assert [f.dimension for f in findings] == [
        Dimension.OVERALL,
        *(f.dimension for f in findings[1:]),
    ]
    assert {f.dimension for f in findings} == set(Dimension), "every dimension has its row"


def test_the_catalogue_spans_verdicts_dimensions_and_doubt() -> None:
    rows = [(name, row) for name in staging.names() for row in staging.load(name).expected]
    assert len(staging.names()) >= 40
    assert {row.dimension for _, row in rows} == {d.value for d in Dimension}
    assert {row.verdict for _, row in rows} == {
        "over",
        "under",
        "right",
        "idle",
        "abstain",
        "advice",
    }
    assert len({name for name, row in rows if row.two_answers}) >= 10
    for name, row in rows:
        assert row.rule is None or row.rule in RULES, name
        assert row.guide is None or row.guide in GUIDES
        assert (row.guide is None) == (row.line is None)
