"""What to do first: what costs nothing before what frees hardware, and buying last."""

from __future__ import annotations

import pytest

from advisor.advice import ordered
from advisor.finding import Dimension, Step
from advisor.sizing import judge
from tests.staged import staging


def test_the_steps_are_in_the_guides_order() -> None:
    assert [step.value for step in Step] == [
        "repair",
        "engine",
        "quantisation",
        "consolidation",
        "smaller_class",
        "fewer_gpus",
        "buy",
    ]


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        (
            "chatbot_on_eight_h100",
            [
                (Dimension.VRAM, Step.CONSOLIDATION),
                (Dimension.GPU_COUNT, Step.FEWER_GPUS),
                (Dimension.GPU_CLASS, Step.BUY),
            ],
        ),
        (
            "training_behind_a_nas",
            [
                (Dimension.NETWORK, Step.REPAIR),
                (Dimension.STORAGE, Step.BUY),
                (Dimension.RAM, Step.BUY),
            ],
        ),
        pytest.param(
            "queue_before_llama_cpp", [(Dimension.GPU_COUNT, Step.ENGINE)], marks=pytest.mark.long
        ),
        pytest.param(
            "seventy_b_on_one_l40s_for_many",
            [(Dimension.VRAM, Step.QUANTISATION)],
            marks=pytest.mark.long,
        ),
    ],
)
def test_advice_is_told_in_the_order_in_which_to_follow_it(
    name: str, steps: list[tuple[Dimension, Step]]
) -> None:
    told = [(f.dimension, f.step) for f in ordered(judge(staging.case(name)))]
    assert [pair for pair in told if pair in steps] == steps
    assert told[0] == steps[0]


@pytest.mark.parametrize(
    ("name", "dimension"),
    [
        ("seventy_b_on_two_l40s", Dimension.GPU_COUNT),
        ("chatbot_on_eight_h100", Dimension.GPU_CLASS),
        pytest.param("seventy_b_on_one_l40s_for_many", Dimension.VRAM, marks=pytest.mark.long),
    ],
)
def test_before_a_card_is_bought_it_is_told_how_well_the_first_is_used(
    name: str, dimension: Dimension
) -> None:
    (found,) = [f for f in judge(staging.case(name)) if f.dimension is dimension]
    figures = {e.metric: e.value for e in found.evidence}
    assert figures["engine"] == "vllm"
    assert isinstance(figures["engine.kv_cache_usage_ratio"], float)
    assert isinstance(figures["engine.requests_running"], float)
