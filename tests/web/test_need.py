"""What an inference engine needs of a GPU's memory, against what it reserved."""

from __future__ import annotations

import pytest

from advisor.web.need import needed_bytes
from telemetry.window import Frame

GPUS = ("GPU-a", "GPU-b")


def engine(start: int, usage: float | None, pool: float | None, model: str | None) -> Frame:
    texts = {"gpu_uuids": " ".join(GPUS)}
    if model is not None:
        texts["model"] = model
    columns = {"kv_cache_usage_ratio": [usage], "kv_cache_bytes": [pool]}
    return Frame(("engine", "8000"), [start], [10], columns, [texts])


def test_it_is_the_share_of_weights_and_used_cache() -> None:
    frame = engine(100, 0.25, 40e9, "Qwen/Qwen2.5-7B-Instruct")
    need = needed_bytes([frame], "GPU-a", (), 100)
    # 7.62 billion parameters of 2 bytes (the model's card), a quarter of the cache, on two cards.
    assert need == pytest.approx((15.2e9 + 10e9) / 2, rel=0.01)
    assert needed_bytes([frame], "GPU-b", (), 100) == need


@pytest.mark.parametrize(
    ("frame", "uuid", "start"),
    [
        (engine(100, 0.25, 40e9, "Qwen/Qwen2.5-7B-Instruct"), "GPU-a", 110),
        (engine(100, 0.25, 40e9, "Qwen/Qwen2.5-7B-Instruct"), "GPU-c", 100),
        (engine(100, None, 40e9, "Qwen/Qwen2.5-7B-Instruct"), "GPU-a", 100),
        (engine(100, 0.25, None, "Qwen/Qwen2.5-7B-Instruct"), "GPU-a", 100),
        (engine(100, 0.25, 40e9, "nobody/knows-it"), "GPU-a", 100),
        (engine(100, 0.25, 40e9, None), "GPU-a", 100),
    ],
    ids=["it has ended", "another GPU", "no use", "no size", "no catalogue", "no name"],
)
def test_where_it_cannot_be_told_it_is_not(frame: Frame, uuid: str, start: int) -> None:
    assert needed_bytes([frame], uuid, (), start) is None
