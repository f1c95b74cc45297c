"""Healthy but awkward work gets the states that somebody expected who had not read the code."""

from __future__ import annotations

import pytest

from tests.states.awkward import Case, cases


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_awkward_work_gets_its_state(case: Case) -> None:
    assert case.wrong(case.states()) == []
