"""Patterns repeat, stay within their bounds, and say what is wrong with them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.simulation.patterns import parse_pattern
from telemetry.simulation.quantity import Dimension, parse_quantity

LEVELS = st.floats(0, 1)


@st.composite
def waves(draw: st.DrawFn) -> tuple[dict[str, Any], float, float]:
    kind = draw(st.sampled_from(["square", "sine", "ramp", "noise"]))
    low, high = sorted((draw(LEVELS), draw(LEVELS)))
    options: dict[str, Any] = {"period": draw(st.integers(1, 400)), "low": low, "high": high}
    if kind == "square":
        options["duty"] = draw(LEVELS)
    return {kind: options}, low, high


@given(waves(), st.integers(0, 2_000_000_000))
def test_a_wave_repeats_within_its_bounds(
    wave: tuple[dict[str, Any], float, float], second: int
) -> None:
    value, low, high = wave
    pattern = parse_pattern(value)
    assert pattern.at(second) == pattern.at(second + pattern.period)
    assert low - 1e-9 <= pattern.at(second) <= high + 1e-9


@given(st.integers(1, 300), LEVELS, st.integers(0, 1000))
def test_a_square_is_high_for_its_duty(period: int, duty: float, begin: int) -> None:
    pattern = parse_pattern({"square": {"period": period, "low": 0, "high": 1, "duty": duty}})
    high = sum(pattern.at(second) for second in range(begin, begin + period))
    assert high == round(period * duty)


def test_a_piecewise_line_goes_through_its_points_and_holds_the_last() -> None:
    pattern = parse_pattern({"piecewise": {"period": 100, "points": [[0, 1], [10, 3], [20, 0.5]]}})
    assert [pattern.at(s) for s in (0, 5, 10, 20, 99, 100)] == [1, 2, 3, 0.5, 0.5, 1]


def test_noise_differs_by_its_seed_alone() -> None:
    one, other, again = (
        parse_pattern({"noise": {"period": 50, "low": 0, "high": 1, "seed": seed}})
        for seed in (1, 2, 1)
    )
    levels = [one.at(s) for s in range(50)]
    assert levels == [again.at(s) for s in range(50)]
    assert levels != [other.at(s) for s in range(50)]
    assert len(set(levels)) == 50


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("fast", "a number, or a table"),
        (True, "a number, or a table"),
        ({"wave": {"period": 2}}, "square, sine"),
        ({"square": {"period": 2, "low": 0}}, "high is missing"),
        ({"sine": {"period": 2, "low": 0, "high": 1, "duty": 0.5}}, "duty is unknown"),
        ({"sine": {"period": 2.5, "low": 0, "high": 1}}, "whole seconds as period"),
        ({"sine": {"period": 0, "low": 0, "high": 1}}, "at least one second"),
        ({"ramp": {"period": 5, "low": "x", "high": 1}}, "a number as low"),
        ({"piecewise": {"period": 5, "points": [[1, 2]]}}, "the first at second 0"),
        ({"piecewise": {"period": 5, "points": [[0, 2], [7, 1]]}}, "before the end"),
    ],
)
def test_a_pattern_says_what_it_expects(value: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        parse_pattern(value)


def test_quantities_are_read_in_base_units() -> None:
    assert parse_quantity("2 TiB", Dimension.BYTES) == 2 * 2**40
    assert parse_quantity("7.68TB", Dimension.BYTES) == 7.68e12
    assert parse_quantity("1 Gb/s", Dimension.BITS_PER_SECOND) == 1e9
    assert parse_quantity("120 MB/s", Dimension.BYTES_PER_SECOND) == 120e6
    assert parse_quantity("30 min", Dimension.SECONDS) == 1800
    for wrong in ("1 Gb/s", "many GB", "-1 GB", "5"):
        with pytest.raises(ValueError, match="bytes"):
            parse_quantity(wrong, Dimension.BYTES)
