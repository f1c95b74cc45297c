"""The classifier: where its table comes from, what it needs, and when it says nothing."""

from __future__ import annotations

import importlib.resources
from itertools import islice

import pytest

from advisor.classifier.answer import answers
from advisor.classifier.generator import rows
from advisor.classifier.model import shipped_models, usable
from advisor.classifier.parameters import Parameters
from advisor.classifier.table import SHA256, encoded, parsed, shipped
from advisor.features import Features
from advisor.phase import Phase
from tests.project.test_imports import HEAVY, loaded_after_import


def test_the_table_is_small_and_the_one_that_was_checked_in() -> None:
    content = importlib.resources.files("advisor.classifier").joinpath("table.csv").read_bytes()
    assert len(content) <= 5_000_000
    assert len(SHA256) == 64
    assert len(shipped().rows) == len(content.splitlines()) - 1


def test_the_generator_makes_the_table_that_is_shipped() -> None:
    table = shipped()
    for i, (phase, features) in enumerate(islice(rows(Parameters.load()), 25)):
        assert table.phases[i] == phase
        for name, value in encoded(features).items():
            if value is None:
                assert table.rows[i][name] is None
            else:
                assert table.rows[i][name] == pytest.approx(value, rel=1e-3)


def test_a_range_without_a_source_is_refused() -> None:
    entry = {"low": 0.0, "high": 1.0, "from": ["nobody"]}
    with pytest.raises(ValueError, match="nobody"):
        Parameters.parse({"seed": 1, "rows_a_kind": 1, "source": {}, "common": {"x": entry}})


def work(**more: float | int | None) -> Features:
    """Two hours that look like tokens being generated on eight cards."""
    known: dict[str, float | int | None] = {
        "utilization_ratio": 0.08,
        "duty_ratio": 0.99,
        "power_ratio": 0.22,
        "power_peak_ratio": 1.2,
        "power_trough_ratio": 0.7,
        "alike_gpus": 8,
    }
    return Features(0, 7200, 7200, 1.0, **(known | more))  # type: ignore[arg-type]


def test_it_names_the_columns_that_it_used_and_no_others() -> None:
    (answer,) = answers([work()], 0.5, shipped_models())
    assert answer is not None
    assert answer.phase is Phase.INFERENCE
    text = " ".join(answer.readings)
    assert "power_ratio 0.22" in text
    assert "tensor" not in text
    assert "memory" not in text


def test_it_says_nothing_of_what_the_table_does_not_have() -> None:
    likely, strange = answers([work(), work(power_ratio=2.5)], 0.5, shipped_models())
    assert likely is not None
    assert strange is None


def test_it_says_nothing_where_it_is_not_sure() -> None:
    assert answers([work()], 1.01, shipped_models()) == [None]


def test_columns_that_come_from_one_reading_are_asked_for_together() -> None:
    columns = usable({"power_peak_ratio": 1.1, "utilization_ratio": 0.5})
    assert {"power_trough_ratio", "power_deviation_ratio", "duty_ratio"} <= set(columns)
    assert not {"power_ratio", "tensor_active_ratio", "memory_ratio"} & set(columns)


def test_a_table_reads_back() -> None:
    table = parsed("phase,duty_ratio,power_ratio\ntraining,0.5,\n")
    assert table.phases == [Phase.TRAINING]
    assert table.rows == [{"duty_ratio": 0.5, "power_ratio": None}]


def test_nothing_numeric_is_loaded_before_it_is_asked() -> None:
    _, loaded = loaded_after_import("advisor.observe", "advisor.labels", "advisor.service.service")
    assert not loaded & HEAVY
