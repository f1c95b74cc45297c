"""What holds of every server, however it is made."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.finding import Dimension, Finding, Verdict
from advisor.phase import Phase
from advisor.rulebook import Rulebook
from advisor.sizing import judge
from telemetry.state import Cause
from tests.staged.frames import WEEK, Made, case, observations

RULEBOOK = Rulebook.load()
FEW = settings(max_examples=8, deadline=None, derandomize=True)

LEVELS = st.lists(st.floats(0.05, 1.0), min_size=1, max_size=5).map(tuple)
SERVERS = st.builds(
    Made,
    cards=st.sampled_from([1, 2, 4]),
    levels=LEVELS,
    cache=st.floats(0.0, 1.0),
    waiting=st.sampled_from([0.0, 3.0]),
    phase=st.sampled_from(
        [Phase.LLM_INFERENCE, Phase.TRAINING, Phase.QLORA_FINETUNING, Phase.LIGHT_INFERENCE]
    ),
    lost=st.sampled_from([0.0, 0.05, 0.2, 0.5]),
    cause=st.sampled_from([Cause.LOCAL_STORAGE, Cause.HOST_MEMORY, Cause.CPU_DATALOADER]),
    host=st.sampled_from([None, 0.1, 0.5, 0.95]),
)


def findings(made: Made) -> dict[Dimension, Finding]:
    """By dimension."""
    return {f.dimension: f for f in judge(case(made, RULEBOOK))}


@FEW
@given(SERVERS, st.floats(1.0, 3.0))
def test_more_vram_never_turns_right_into_under(made: Made, factor: float) -> None:
    small = findings(made)
    # An unnamed card, so that its memory alone is what changes.
    named = replace(made, card="a card")
    small, large = (
        findings(named),
        findings(replace(named, card_bytes=int(named.card_bytes * factor))),
    )
    for dimension in (Dimension.VRAM, Dimension.GPU_COUNT, Dimension.OVERALL):
        if small[dimension].verdict is Verdict.RIGHT:
            assert large[dimension].verdict is not Verdict.UNDER, dimension


@FEW
@given(SERVERS, st.integers(1, 4), st.data())
def test_less_data_never_raises_confidence(made: Made, cut: int, data: st.DataObject) -> None:
    less = findings(replace(made, windows=WEEK // (2**cut)))
    whole = findings(made)
    for dimension, finding in less.items():
        # The same verdict on less data is never surer.
        if finding.verdict is whole[dimension].verdict:
            assert finding.confidence <= whole[dimension].confidence, dimension


@FEW
@given(SERVERS)
def test_order_does_not_matter(made: Made) -> None:
    forwards, backwards = findings(made), findings(replace(made, backwards=True))
    for dimension, finding in forwards.items():
        other = backwards[dimension]
        assert (finding.verdict, finding.rule, finding.confidence) == (
            other.verdict,
            other.rule,
            other.confidence,
        )


@FEW
@given(SERVERS, st.sets(st.integers(0, WEEK - 1), max_size=500))
def test_a_gap_is_never_a_zero(made: Made, missing: set[int]) -> None:
    """The need is that of the windows that were seen, wherever the gaps lie.

    With equal windows nothing may change at all: a gap read as a zero would lower the sums.
    """
    even = replace(made, levels=made.levels[:1])
    seen = frozenset(range(WEEK)) - missing
    whole, gaps = case(even, RULEBOOK), case(replace(even, seen=seen), RULEBOOK)
    assert set(map(_rounded, gaps.busy_sums)) == set(map(_rounded, whole.busy_sums))
    assert gaps.past is not None
    assert whole.past is not None
    assert {m.memory for m in gaps.past.moments} == {m.memory for m in whole.past.moments}
    for dimension, finding in findings(replace(even, seen=seen)).items():
        assert finding.coverage_ratio < 1.0 or not missing, dimension


@FEW
@given(SERVERS, st.integers(1, 299))
def test_windows_that_begin_anywhere_give_the_same_need(made: Made, offset: int) -> None:
    even = replace(made, levels=made.levels[:1])
    aligned, shifted = findings(even), findings(replace(even, offset=offset))
    for dimension in (Dimension.GPU_COUNT, Dimension.VRAM, Dimension.OVERALL):
        assert aligned[dimension].verdict is shifted[dimension].verdict
    assert max(case(replace(even, offset=offset), RULEBOOK).busy_sums) == pytest.approx(
        max(case(even, RULEBOOK).busy_sums)
    )


def test_a_passing_trial_of_training_is_held_against_no_rule_of_training() -> None:
    served = case(Made(), RULEBOOK)
    for share, asked in ((0.01, False), (0.2, True)):
        phases = {Phase.LLM_INFERENCE: 1.0 - share, Phase.TRAINING: share}
        (ram,) = [f for f in judge(replace(served, phases=phases)) if f.dimension is Dimension.RAM]
        assert ("R04" in ram.rules) is asked


def test_a_gpu_that_was_not_seen_in_a_window_makes_it_incomplete() -> None:
    seen = observations(Made(cards=2))
    frame = seen.gpus["GPU-1"].frame
    frame.columns["utilization_ratio"][7] = None
    from advisor.assess import case_of

    past = case_of(seen, RULEBOOK).past
    assert past is not None
    assert [m.complete for m in past.moments].count(False) == 1
    assert past.moments[7].busy == 0.5


@FEW
@given(SERVERS, st.integers(0, WEEK))
def test_idle_hours_never_make_a_server_under(made: Made, idle: int) -> None:
    before, after = findings(made), findings(replace(made, idle_windows=idle))
    for dimension, finding in after.items():
        if finding.verdict is Verdict.UNDER:
            assert before[dimension].verdict is Verdict.UNDER, dimension


def _rounded(value: float) -> float:
    return round(value, 9)
