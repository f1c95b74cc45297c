"""Rows without a GPU, and columns without a name."""

from __future__ import annotations

import pytest

from advisor.importers.columns import ColumnMap
from advisor.importers.dealing import Ambiguous, deal
from advisor.importers.recognise import recognise


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_rows_of_one_time_are_one_reading(gpus: int) -> None:
    times = [float(t) for t in range(20) for _ in range(gpus)]
    assert deal(times, None) == (gpus, list(range(gpus)) * 20)


def test_a_last_reading_that_is_not_whole_is_left_out() -> None:
    times = [float(t) for t in range(20) for _ in range(2)][:-1]
    assert deal(times, None)[1][-3:] == [0, 1, None]


def test_readings_of_uneven_size_do_not_tell() -> None:
    times = [float(t) for t in range(20) for _ in range(1 + t % 3)]
    with pytest.raises(Ambiguous):
        deal(times, None)


def test_a_single_gpu_with_a_slow_reading_is_one_gpu() -> None:
    times = [t * 1.0 + (0.3 if t == 7 else 0.0) for t in range(60)]
    assert deal(times, None)[0] == 1


_ROW = "2025/07/26 23:53:30.945"


def _titles(*rows: str) -> list[str]:
    return recognise([r.split(", ") for r in rows], ColumnMap.load().written)


def test_two_columns_of_watts_are_told_by_the_constant_above() -> None:
    assert _titles(f"{_ROW}, 400.00 W, 90.10 W", f"{_ROW}, 400.00 W, 120.00 W") == [
        "timestamp",
        "power.limit",
        "power.draw",
    ]
    assert _titles(f"{_ROW}, 90.00 W, 90.10 W", f"{_ROW}, 80.00 W, 120.00 W") == [
        "timestamp",
        "",
        "",
    ]


def test_per_cents_that_contradict_the_order_are_not_told() -> None:
    assert _titles(f"{_ROW}, 0 %, 30 %", f"{_ROW}, 5 %, 30 %") == ["timestamp", "", ""]


def test_memory_is_never_guessed() -> None:
    assert _titles(f"{_ROW}, 5 MiB, 100 MiB", f"{_ROW}, 7 MiB, 100 MiB")[1:] == ["", ""]
