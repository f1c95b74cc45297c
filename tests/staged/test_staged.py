"""Every staged server gets the verdicts that the guides ask for."""

from __future__ import annotations

import pytest

from advisor.finding import Dimension
from advisor.profiles import GUIDES, Profiles
from advisor.sizing import judge
from tests.staged import staging

RULES = {rule.id for rule in Profiles.load().rules}


@pytest.mark.parametrize("name", staging.names())
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
