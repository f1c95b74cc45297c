"""Rates from counters that wrap, begin anew or are too narrow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.nvml.rates import ByteRate, NarrowCounter, TimeShare, pcie_ceiling

GIGABYTE = 1e9


@pytest.mark.parametrize(
    ("generation", "width", "gigabytes"),
    # PCI-SIG, per direction: 15.75 GB/s (gen 3 x16), 31.5 (4), 63.0 (5), 121 (6); 4.0 (gen 1 x16)
    [(1, 16, 4.0), (2, 16, 8.0), (3, 16, 15.75), (4, 16, 31.5), (5, 16, 63.0), (6, 16, 121.0)],
)
def test_link_ceilings_are_the_published_ones(
    generation: int, width: int, gigabytes: float
) -> None:
    assert pcie_ceiling(generation, width) == pytest.approx(gigabytes * GIGABYTE, rel=0.002)


def test_an_unknown_link_has_no_ceiling() -> None:
    assert pcie_ceiling(None, 16) is None
    assert pcie_ceiling(9, 16) is None
    assert pcie_ceiling(4, 0) is None


@given(
    start=st.integers(0, 2**64 - 1),
    rates=st.lists(st.floats(0, 60 * GIGABYTE), min_size=1, max_size=20),
)
def test_a_64_bit_counter_gives_the_rate_across_its_wrap(start: int, rates: list[float]) -> None:
    counter, ceiling = ByteRate(), 63 * GIGABYTE
    total, time = start, 100.0
    # One that has only just begun may be taken for a narrow one when it wraps: not here.
    total = max(total, 2**32)
    assert counter.add(total % 2**64, 64, time, ceiling) is None
    for rate in rates:
        total, time = total + int(rate), time + 1
        if total % 2**64 < 2**33:
            return
        assert counter.add(total % 2**64, 64, time, ceiling) == pytest.approx(int(rate))
    assert counter.dropped_total == 0


def test_a_64_bit_counter_wraps() -> None:
    counter = ByteRate()
    counter.add(2**64 - 1000, 64, 0, 63 * GIGABYTE)
    assert counter.add(4000, 64, 1, 63 * GIGABYTE) == 5000


def test_a_32_bit_counter_wraps_on_a_link_that_cannot_fill_it() -> None:
    counter, slow = ByteRate(), pcie_ceiling(3, 1)
    counter.add(2**32 - 1000, 32, 0, slow)
    assert counter.add(500_000_000, 32, 1, slow) == 500_001_000


def test_a_32_bit_counter_on_a_fast_link_tells_nothing() -> None:
    with pytest.raises(NarrowCounter):
        ByteRate().add(0, 32, 0, pcie_ceiling(5, 16))
    slow = ByteRate()
    slow.add(0, 32, 0, pcie_ceiling(3, 1))
    with pytest.raises(NarrowCounter):
        slow.add(10, 32, 10, pcie_ceiling(3, 1))  # ten seconds are enough to go round


def test_a_wide_type_around_a_narrow_counter_is_found_out() -> None:
    counter, fast = ByteRate(), pcie_ceiling(5, 16)
    counter.add(2**32 - 5, 64, 0, fast)
    with pytest.raises(NarrowCounter):
        counter.add(7, 64, 1, fast)


def test_a_counter_that_begins_anew_is_no_traffic() -> None:
    counter, ceiling = ByteRate(), 63 * GIGABYTE
    counter.add(10**15, 64, 0, ceiling)
    assert counter.add(1000, 64, 1, ceiling) is None
    assert counter.dropped_total == 1
    assert counter.add(3000, 64, 2, ceiling) == 2000


def test_nothing_above_the_ceiling_is_believed() -> None:
    counter, ceiling = ByteRate(), 16 * GIGABYTE
    counter.add(0, 64, 0, ceiling)
    assert counter.add(int(17 * GIGABYTE), 64, 1, ceiling) is None
    assert counter.dropped_total == 1


def test_time_shares() -> None:
    share = TimeShare()
    assert share.add(0, 10) is None
    assert share.add(500_000_000, 11) == 0.5
    assert share.add(1_520_000_000, 12) == 1.0  # a moment's jitter
    assert share.add(5_000_000_000, 13) is None  # not in nanoseconds
    assert share.add(1, 14) is None  # began anew
    assert share.add(1, 14) is None  # no time passed
