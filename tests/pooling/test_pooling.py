"""Servers taken together: needs at the same moment, never sums of peaks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.assessment import Assessment
from advisor.finding import Verdict
from advisor.phase import Phase, Segment
from advisor.pooling import Fleet, FleetTeller, inference_sentence, pool_need
from advisor.rulebook import Rulebook
from advisor.sizing import judge
from advisor.sizing.packing import cards_for
from tests.staged.frames import START, Made, case, observations

RULEBOOK = Rulebook.load()
DAY = (0.9, 0.0)
NIGHT = (0.0, 0.9)


def assessed(host: str, made: Made) -> Assessment:
    """The assessment of a server that was made by hand."""
    seen, judged = observations(made), case(made, RULEBOOK)
    inventory = replace(seen.inventory, host=host)
    segments = tuple(s for t in seen.gpus.values() for s in t.segments)
    return Assessment(
        host,
        inventory,
        seen.period,
        seen.period,
        (),
        (),
        segments,
        judge(judged),
        pool_need=pool_need(judged),
    )


def fleet(**servers: Made) -> Fleet:
    """The fleet of servers by name."""
    teller = FleetTeller()
    for host, made in servers.items():
        teller.add(assessed(host, made))
    return teller.fleet()


def test_servers_that_work_in_turns_share_what_a_sum_of_peaks_would_keep() -> None:
    day, night = (Made(cards=1, levels=levels, cache=0.2) for levels in (DAY, NIGHT))
    (pool,) = fleet(a=day, b=night, c=day, d=night).pools
    # 1.8 cards at a time with a fifth to spare are 3; alone each needs its own.
    assert (pool.needed_gpus, pool.sum_of_peaks_gpus, pool.gpus) == (3, 4, 4)
    assert len(pool.free) == 1
    assert pool.free_gpus == 1
    assert "fits at every moment on 3 of 4 GPUs" in str(pool.recommendation)


def test_servers_that_work_at_once_are_all_needed() -> None:
    day = Made(cards=1, levels=DAY, cache=0.2)
    (pool,) = fleet(a=day, b=day).pools
    assert pool.needed_gpus == 2
    assert pool.free == ()
    assert pool.recommendation is None


def test_memory_is_packed_and_not_added_up() -> None:
    # Three jobs of 26 GB are 78 GB, and each needs a card of 48 GB: two do not fit on one.
    quiet = Made(cards=1, levels=(0.05,), cache=0.5)
    (pool,) = fleet(a=quiet, b=quiet, c=quiet).pools
    assert pool.needed_gpus == 3


@pytest.mark.parametrize(
    "other",
    [
        Made(cards=1, levels=(0.05,), card="NVIDIA H100 80GB HBM3", card_bytes=85_520_809_984),
        Made(cards=1, levels=(0.05,), windows=288),
    ],
    ids=["other_cards", "another_time"],
)
def test_what_cannot_be_compared_is_not_pooled(other: Made) -> None:
    assert fleet(a=Made(cards=1, levels=(0.05,), cache=0.1), b=other).pools == ()


def test_a_declared_spare_is_left_alone() -> None:
    quiet = Made(cards=1, levels=(0.05,), cache=0.1)
    made = case(quiet, RULEBOOK)
    assert pool_need(made) is not None
    for declared in ({"standby": True}, {"redundancy": "n+1"}):
        inventory = replace(made.inventory, **declared)
        assert pool_need(replace(made, inventory=inventory)) is None


def test_the_same_verdicts_are_grouped() -> None:
    large = Made(cards=4, levels=(0.1,), cache=0.2)
    groups = fleet(a=large, b=large, c=Made(cards=1, levels=(0.9,))).groups
    assert [(g.verdict, g.hosts) for g in groups] == [
        (Verdict.OVER, ("a", "b")),
        (Verdict.RIGHT, ("c",)),
    ]


def test_the_share_of_inference_is_told_beside_the_documented_one() -> None:
    server = assessed("a", Made(cards=1))
    trains = Segment("a", "GPU-0", START, START + 604_800 // 3, Phase.TRAINING, 0.9)
    waits = Segment("a", "GPU-0", START, START + 604_800, Phase.IDLE, 0.9)
    teller = FleetTeller()
    teller.add(replace(server, segments=(*server.segments, trains, waits)))
    text = inference_sentence(teller.fleet())
    assert str(text) == ("inference took 75 % of the GPU-hours of known work; the guide says 80 %")
    assert inference_sentence(FleetTeller().fleet()) is None


@given(st.lists(st.floats(1e9, 200e9), max_size=12), st.floats(5e9, 100e9))
def test_packing_holds_every_job(jobs: list[float], usable: float) -> None:
    cards = cards_for(jobs, usable, 1e9)
    assert cards * usable >= sum(jobs)
    assert cards <= sum(cards_for([job], usable, 1e9) for job in jobs)
    assert cards_for(list(reversed(jobs)), usable, 1e9) == cards
