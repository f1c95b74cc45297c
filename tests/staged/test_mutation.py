"""Each documented rule is tested: make it wrong, and a staged server fails."""

from __future__ import annotations

import random

import pytest

from advisor.profiles import Rule
from tests.staged import mutation

RULES = mutation.rules()
_SAMPLE = random.Random(9).sample([rule.id for rule in RULES], 2)


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(rule, id=rule.id, marks=() if rule.id in _SAMPLE else pytest.mark.long)
        for rule in RULES
    ],
)
def test_a_wrong_rule_breaks_a_staged_server(rule: Rule) -> None:
    for made, wrong in mutation.mutants(rule).items():
        assert mutation.broken_by(rule, wrong) is not None, made
