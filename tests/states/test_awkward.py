"""Healthy but awkward work gets the states that somebody expected who had not read the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.states.awkward import Case, cases


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_awkward_work_gets_its_state(case: Case) -> None:
    assert case.wrong(case.states()) == []


def test_the_page_on_how_well_talla_judges_has_the_figures_of_the_list() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text("utf-8")
    right = sum(not case.wrong(case.states()) for case in cases())
    assert "[states-cases.md](states-cases.md)" in page
    assert f"{right} of {len(cases())} as expected" in page
