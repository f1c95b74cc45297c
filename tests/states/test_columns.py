"""Any set of columns: what is missing is named, lowers confidence, and is never a zero."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telemetry.states import FIELDS, Classifier, State, WindowState
from telemetry.thresholds import Thresholds
from telemetry.window import Frame
from telemetry.workload import Kind
from tests.states.stage import Stage, held, idle, step
from tests.states.test_causes import FULL, SHORT, in_turns
from tests.states.test_short_waits import DISK, IO, SLOW, looping, waiting
from tests.states.test_troubles import CASES

COLUMNS = ("power", "memory", "process", "pcie", "sm_active", "gap", "job", "signal")
SPIN = step(
    1.0, 130, pcie_rx_bytes_per_second=2e5, pcie_tx_bytes_per_second=2e5, sm_active_ratio=0.15
)
SCENES = {
    "idle": (Stage().add(900, idle(sm_active_ratio=0.0)), None),
    "held": (Stage().add(900, held(sm_active_ratio=0.0)), None),
    "busy": (Stage().add(900, step(sm_active_ratio=0.8)), Kind.TRAINING),
    "orphan": (Stage().add(900, held(process_count=0.0)), None),
    "stuck": (Stage().add(300, idle(sm_active_ratio=0.0)).add(2700, SPIN), Kind.TRAINING),
    "starved": (CASES[0][2], Kind.TRAINING),
    "loaders that wait all the time": (in_turns(SHORT, 10, 0), Kind.TRAINING),
    "loaders that wait and compute": (in_turns(SHORT, 6, 4), Kind.TRAINING),
    "loaders that compute": (in_turns(FULL, 0, 10), Kind.TRAINING),
    "short waits": (looping({("host",): IO, DISK: SLOW}, **waiting(1.2e7)), Kind.TRAINING),
}


@pytest.mark.parametrize("scene", SCENES)
def test_fewer_columns_never_raise_confidence(scene: str) -> None:
    stage, kind = SCENES[scene]
    full = stage.states(kind)
    sets: dict[frozenset[str], list[WindowState]] = {frozenset(): full}
    for size in (1, 2, 3):
        for without in combinations(COLUMNS, size):
            states = stage.states(kind, without=without)
            sets[frozenset(without)] = states
            for name in without:
                more = sets[frozenset(without) - {name}]
                for fewer, before in zip(states, more, strict=True):
                    assert fewer.confidence <= before.confidence + 1e-9, (without, name)


def test_utilisation_and_power_alone_are_enough_and_say_what_was_missing() -> None:
    stage = Stage().add(600, idle()).add(600, step())
    states = stage.states(without=("memory", "process", "pcie", "gap", "job"))
    assert [s.state for s in states] == [State.IDLE_FREE] * 2 + [State.BUSY] * 2
    assert states[0].confidence <= 0.5  # nobody saw whether memory was held
    assert {"memory_used_bytes", "process_count", "gap_ratio"} <= set(states[0].unused)


def test_means_of_a_minute_claim_less() -> None:
    frame = Frame(
        ("gpu", "a"),
        [0, 300],
        [300, 300],
        {"utilization_ratio": [0.0, 0.4], "power_watts": [70.0, 300.0]},
    )
    idle_state, busy = Classifier().classify(frame)
    assert (idle_state.state, busy.state) == (State.IDLE_FREE, State.BUSY)
    assert max(idle_state.confidence, busy.confidence) <= 0.7


def test_nothing_read_is_unknown() -> None:
    frame = Frame(("gpu", "a"), [0], [300], {"covered_seconds": [300.0]})
    assert Classifier().classify(frame)[0].state is State.UNKNOWN
    assert Classifier().classify(Frame(("gpu", "a"))) == []


def test_a_window_that_was_hardly_sampled_is_unknown() -> None:
    frame = Frame(("gpu", "a"), [0], [300], {"covered_seconds": [20.0], "utilization_ratio": [0.9]})
    assert Classifier().classify(frame)[0].state is State.UNKNOWN


cells = st.one_of(st.none(), st.floats(0, 1), st.floats(0, 1e12))


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(1, 12), st.integers(-(10**6), 10**6))
def test_any_cells_give_one_state_a_window_whatever_the_clock_says(
    data: st.DataObject, n: int, shift: int
) -> None:
    names = data.draw(st.lists(st.sampled_from(FIELDS), unique=True))
    columns = {name: data.draw(st.lists(cells, min_size=n, max_size=n)) for name in names}
    kinds = data.draw(st.sampled_from([None, *Kind]))
    start = [1000 + 300 * i for i in range(n)]
    frame = Frame(("gpu", "a"), start, [300] * n, columns)
    moved = Frame(("gpu", "b"), [s + shift for s in start], [300] * n, columns)
    from telemetry.states import Jobs

    states = Classifier().classify(frame, jobs=Jobs([kinds] * n))
    assert len(states) == n
    assert all(0.0 <= s.confidence <= 1.0 for s in states)
    assert all(s.lost_ratio is None or s.cause is not None for s in states)
    assert states == Classifier().classify(moved, jobs=Jobs([kinds] * n))


def test_every_threshold_has_its_source_and_a_strange_one_is_refused() -> None:
    assert Thresholds.load().lost_ratio == 0.10  # MLPerf Storage: 90 % accelerator utilisation
    entry = {"name": "odd", "value": 1.0, "source": "x"}
    table = {"threshold": [entry], "file_systems": {"network": [], "local_fuse": []}}
    with pytest.raises(ValueError, match="odd"):
        Thresholds.parse(table)
