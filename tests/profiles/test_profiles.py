"""Every documented rule is there, speaks of things that exist, and quotes its guide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.catalogue import find_gpu
from advisor.finding import Dimension, Verdict
from advisor.phase import Phase
from advisor.profiles import ALL_PHASES, GUIDES, Profiles, Rule, Status
from advisor.sizing.quantities import QUANTITIES

RULES = Profiles.load().rules


def test_all_sixty_one_rules_are_there_once() -> None:
    assert [rule.id for rule in RULES] == [f"R{i:02}" for i in range(1, 62)]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_a_rule_speaks_of_things_that_exist(rule: Rule) -> None:
    assert rule.guide in GUIDES
    assert rule.quote
    assert all(p == ALL_PHASES or Phase(p) for p in rule.phases)
    if rule.quantity is not None:
        assert rule.quantity in QUANTITIES
        assert rule.value is not None
        rule.met(rule.value)
        assert rule.breach in (Verdict.UNDER, Verdict.ADVICE)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_what_is_contradicted_or_cannot_be_seen_never_sizes(rule: Rule) -> None:
    if rule.status not in (Status.ACTIVE, Status.ADVICE):
        assert rule not in Profiles(RULES).checkable(rule.dimension, list(Phase))


def test_every_contradiction_is_told_in_a_note() -> None:
    told = " ".join(rule.note or "" for rule in RULES)
    assert [n for n in range(1, 13) if f"C{n}:" not in told] == []


@given(st.floats(0, 1e13))
def test_marketed_terabytes_are_met_by_what_the_kernel_can_use(memory: float) -> None:
    rule = Profiles(RULES).rule("R04")
    assert rule.met(memory) == (memory >= 1.92e12)


def test_the_catalogue_agrees_with_the_guide() -> None:
    # R61, as the guide prints it.
    for name, gigabytes, bandwidth, watts in (
        ("H100 80GB HBM3", 80, 3.35e12, None),
        ("H200", 141, 4.8e12, None),
        ("L40S", 48, None, 350),
        ("L4", 24, None, 72),
        ("RTX PRO 6000 Blackwell Server Edition", 96, None, None),
    ):
        gpu = find_gpu(name)
        assert gpu is not None, name
        assert gpu.nominal_memory_bytes == gigabytes * 10**9
        assert bandwidth is None or gpu.bandwidth_bytes_per_second == bandwidth
        assert watts is None or gpu.power_watts == watts
    assert Dimension.GPU_CLASS is Profiles(RULES).rule("R61").dimension
