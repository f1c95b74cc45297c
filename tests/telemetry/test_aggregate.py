"""Windows hold what a plain count over the samples gives."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.observe import GPU_FIELDS
from advisor.web.picture import GPU_READINGS, GPU_SERIES
from telemetry.aggregate import Aggregator
from telemetry.metrics import COVERED_SECONDS
from telemetry.metrics import GPU as GPU_FAMILY
from telemetry.signals import Signals
from telemetry.window import Sample, Window

START = 1_700_000_100  # a multiple of 300
GPU = ("gpu", "GPU-0")
SIGNALS = Signals.load()

levels = st.one_of(st.just(0.0), st.floats(0.0, 1.0, allow_subnormal=False))


def windows(
    values: Sequence[float | None],
    *,
    first: int = START,
    origin: int = 0,
    metric: str = "power_watts",
) -> list[Window]:
    aggregator = Aggregator("node", SIGNALS, origin=origin)
    closed = []
    for i, value in enumerate(values):
        if value is not None:
            closed += aggregator.add(Sample(first + i + 0.25, {GPU: {metric: value}}))
    return closed + aggregator.flush()


@given(st.lists(st.one_of(st.none(), st.floats(0, 700)), min_size=1, max_size=900))
def test_each_window_counts_its_own_samples(values: list[float | None]) -> None:
    for window in windows(values):
        inside = [
            v
            for i, v in enumerate(values)
            if v is not None and window.start <= START + i < window.end
        ]
        row = window.rows[GPU].values
        assert row[COVERED_SECONDS] == len(inside)
        assert row["power_watts"] == pytest.approx(sum(inside) / len(inside))
        assert row["power_watts_min"] == min(inside)
        assert row["power_watts_max"] == max(inside)


@given(st.lists(st.one_of(st.none(), levels), min_size=1, max_size=900))
def test_every_sample_is_in_one_window_of_each_tier(values: list[float | None]) -> None:
    taken = sum(v is not None for v in values)
    closed = windows(values, metric="utilization_ratio")
    for tier in (10, 300):
        rows = [w.rows[GPU].values for w in closed if w.tier == tier]
        assert sum(r["utilization_ratio_count"] for r in rows) == taken
        assert sum(r[COVERED_SECONDS] for r in rows) == taken


@given(st.lists(levels, min_size=300, max_size=300))
def test_shares_are_those_of_seconds(values: list[float]) -> None:
    row = windows(values, metric="utilization_ratio")[-1].rows[GPU].values
    assert row["utilization_ratio_zero_ratio"] == pytest.approx(values.count(0.0) / 300)
    assert row["utilization_ratio_busy_ratio"] == pytest.approx(sum(v >= 0.1 for v in values) / 300)
    assert row["gap_ratio"] == pytest.approx(sum(v < 0.5 for v in values) / 300)
    assert row["gap_lost_ratio"] == pytest.approx(sum(1 - v for v in values if v < 0.5) / 300)


def test_a_bucket_entered_late_covers_its_own_part() -> None:
    closed = windows([100.0] * 20, first=START + 4)
    assert [(w.tier, w.start, w.seconds) for w in closed] == [
        (10, START + 4, 6),
        (10, START + 10, 10),
        (10, START + 20, 5),
        (300, START + 4, 21),
    ]


def test_windows_can_begin_at_the_first_row() -> None:
    closed = windows([1.0] * 600, first=START + 7, origin=START + 7)
    assert [(w.start, w.seconds) for w in closed if w.tier == 300] == [
        (START + 7, 300),
        (START + 307, 300),
    ]


def test_a_gap_leaves_no_window() -> None:
    closed = windows([1.0] * 10 + [None] * 600 + [1.0] * 10)
    assert [w.start - START for w in closed if w.tier == 10] == [0, 610]
    assert [w.start - START for w in closed if w.tier == 300] == [0, 610]


def test_a_long_row_of_a_busy_gpu_is_small_and_holds_all_that_is_decided_on() -> None:
    """At most 60 values, which is what the store's 500 MB after 400 days rest on."""
    everything = {metric.name: 0.5 for metric in GPU_FAMILY.metrics}
    host = {
        ("host",): {"pressure_io_some_ratio": 0.5, "pressure_cpu_some_ratio": 0.5}
        | {"pressure_memory_some_ratio": 0.5},
        ("disk", "sda"): {"busy_ratio": 1.0, "read_await_seconds": 1.0, "queue_depth": 9.0},
        ("nic", "eth0"): {"rx_link_ratio": 1.0},
        ("mount", "/data"): {"read_round_trip_seconds": 1.0, "retransmits_per_second": 9.0},
    }
    aggregator = Aggregator("node", SIGNALS)
    aggregator.add(Sample(START, {GPU: everything, **host}))
    rows = {window.tier: window.rows[GPU].values for window in aggregator.flush()}
    assert rows[10].keys() == set(GPU_FAMILY.fields())
    assert len(rows[300]) <= 60
    assert {*GPU_FIELDS, *GPU_READINGS, *GPU_SERIES} <= rows[300].keys()


def test_a_clock_set_back_closes_what_is_open() -> None:
    aggregator = Aggregator("node", SIGNALS)
    aggregator.add(Sample(START + 100.0, {GPU: {"power_watts": 1.0}}))
    closed = aggregator.add(Sample(START - 3500.0, {GPU: {"power_watts": 2.0}}))
    assert [(w.tier, w.start) for w in closed] == [(10, START + 100), (300, START + 100)]
    assert all(w.rows[GPU].values["power_watts"] == 1.0 for w in closed)


def test_a_lost_gpu_keeps_its_row_with_the_reason() -> None:
    aggregator = Aggregator("node", SIGNALS)
    aggregator.add(Sample(START, {}, {GPU: {"error": "GPU is lost"}}))
    (window, _) = aggregator.flush()
    assert window.rows[GPU].values == {COVERED_SECONDS: 0.0}
    assert window.rows[GPU].texts == {"error": "GPU is lost"}


def test_a_sample_stands_for_its_own_span() -> None:
    aggregator = Aggregator("node", SIGNALS)
    for i, level in enumerate((0.0, 1.0, 1.0, 0.0)):
        aggregator.add(Sample(START + 60 * i, {GPU: {"utilization_ratio": level}}, seconds=60))
    long = [w for w in aggregator.flush() if w.tier == 300][-1].rows[GPU].values
    assert long[COVERED_SECONDS] == 240
    assert long["utilization_ratio"] == 0.5
    assert long["utilization_ratio_zero_ratio"] == 0.5


def test_signals_join_gaps_with_what_the_host_did() -> None:
    aggregator = Aggregator("node", SIGNALS)
    for i in range(300):
        gap = i % 3 == 0
        rows = {
            GPU: {"utilization_ratio": 0.1 if gap else 0.95},
            ("host",): {"pressure_io_some_ratio": 0.6 if gap else 0.0},
            ("nic", "eth0"): {"rx_link_ratio": 0.95 if i % 6 == 0 else 0.1},
        }
        aggregator.add(Sample(START + i, rows))
    window = next(w for w in aggregator.flush() if w.tier == 300)
    gpu, host = window.rows[GPU].values, window.rows["host",].values
    assert gpu["gap_ratio"] == pytest.approx(1 / 3)
    assert gpu["gap_io_pressure_ratio"] == pytest.approx(1 / 3)
    assert gpu["gap_nic_ratio"] == pytest.approx(1 / 6)
    assert host["signal_io_pressure_ratio"] == pytest.approx(1 / 3)
    assert "gap_mount_ratio" not in gpu, "a chain that was not read is absent, not zero"
    assert not any(math.isnan(v) for v in gpu.values())
