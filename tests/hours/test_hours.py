"""Hours add up to the period, by GPU and by owner, with gaps as unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.assessment import Observations, Period
from advisor.cli import main
from advisor.history import LocalHistory
from advisor.hours import gpu_hours, owner_hours
from advisor.observe import observe
from telemetry.inventory import BlockDevice
from telemetry.states import Cause, State
from telemetry.store import Store
from telemetry.window import Key, Row
from tests.phases.recorded import HOUR, PRETRAIN, START, Recorder, Values, rest, work

STARVED: Values = {
    **work(0.6, 400),
    "gap_ratio": 0.4,
    "gap_lost_ratio": 0.4,
    "gap_io_pressure_ratio": 0.4,
    "gap_device_ratio": 0.4,
}


def test_each_hour_goes_to_its_state(tmp_path: Path) -> None:
    recorder = Recorder(2).add(HOUR, [work(), rest()], [[PRETRAIN], []])
    recorder.add(HOUR, [rest(60), rest()], [[PRETRAIN], []]).gap(HOUR)
    observed = recorder.add(HOUR, [None, work()], [[], [PRETRAIN]]).observe(tmp_path)
    first, second = gpu_hours(observed, observed.period)
    assert first.hours == {State.BUSY: 1.0, State.IDLE_HELD: 1.0, State.UNKNOWN: 2.0}
    assert second.hours == {State.BUSY: 1.0, State.IDLE_FREE: 2.0, State.UNKNOWN: 1.0}
    assert first.coverage_ratio == pytest.approx(0.5)
    assert second.coverage_ratio == pytest.approx(0.75)


def test_starved_hours_tell_their_cause_and_what_was_lost(tmp_path: Path) -> None:
    host: dict[Key, Row] = {
        ("host",): Row({"signal_io_pressure_ratio": 0.4, "signal_device_ratio": 0.4})
    }
    recorder = Recorder(1).add(2 * HOUR, [STARVED], [[PRETRAIN]], more=host)
    observed = recorder.observe(tmp_path)
    (hours,) = gpu_hours(observed, observed.period)
    assert hours.hours == {State.STARVED: pytest.approx(2.0)}
    assert hours.causes == {Cause.LOCAL_STORAGE: pytest.approx(2.0)}
    assert hours.lost_hours == pytest.approx(0.8)


def test_a_gpu_of_the_inventory_that_was_never_read_is_unknown(tmp_path: Path) -> None:
    observed = Recorder(2).add(HOUR, [work(), None]).observe(tmp_path)
    assert gpu_hours(observed, observed.period)[1].hours == {State.UNKNOWN: 1.0}


def test_owners_share_a_gpu_and_nobody_has_the_free_ones(tmp_path: Path) -> None:
    recorder = Recorder(2)
    recorder.add(HOUR, [work(), rest()], [[PRETRAIN], []], owner="ana")
    recorder.add(HOUR, [work(), work()], [[PRETRAIN], [PRETRAIN]], owner="ben")
    observed = recorder.observe(tmp_path)
    owners = {(o.owner, o.owner_kind): o.hours for o in owner_hours(observed, observed.period)}
    assert owners == {
        ("ben", "user"): {State.BUSY: 2.0},
        ("ana", "user"): {State.BUSY: 1.0},
        ("nobody", "none"): {State.IDLE_FREE: 1.0},
    }


kinds = st.sampled_from(["work", "rest", "held", "starved", "absent", "gap"])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(kinds, kinds, st.integers(1, 20)), min_size=1, max_size=8),
    st.integers(0, 5000),
    st.integers(1, 20_000),
)
def test_hours_always_add_up_to_the_period(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[tuple[str, str, int]],
    offset: int,
    length: int,
) -> None:
    values = {"work": work(), "rest": rest(), "held": rest(40), "starved": STARVED, "absent": None}
    recorder = Recorder(2).add(1, [work(), work()])
    for a, b, windows in parts:
        if "gap" in (a, b):
            recorder.gap(windows)
        else:
            recorder.add(windows, [values[a], values[b]], [[PRETRAIN], []])
    observed = recorder.observe(tmp_path_factory.mktemp("hours"))
    told = Period(START + offset, START + offset + length)
    for period in (observed.period, told):
        hours = gpu_hours(observed, period)
        for gpu in hours:
            assert sum(gpu.hours.values()) == pytest.approx(period.hours)
        owners = owner_hours(observed, period)
        assert sum(sum(o.hours.values()) for o in owners) == pytest.approx(2 * period.hours)


def test_the_commands_print_the_documented_shapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Recorder(1).add(HOUR, [work()], [[PRETRAIN]]).observe(tmp_path)
    store = str(tmp_path / "recorded.db")
    assert main(["hours", "--store", store, "--json"]) == 0
    (hours,) = json.loads(capsys.readouterr().out)
    assert hours == {
        "host": "host",
        "gpu_uuid": "GPU-0",
        "hours": {"busy": 1.0},
        "causes": {},
        "lost_hours": 0.0,
        "coverage_ratio": 1.0,
        "losses": [],
    }
    assert main(["hours", "--store", store, "--by", "owner", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"owner": "ana", "owner_kind": "user", "hours": {"busy": 1.0}}
    ]
    assert main(["phases", "--store", store, "--json"]) == 0
    (segment,) = json.loads(capsys.readouterr().out)
    assert {"host", "gpu_uuid", "start", "end", "phase", "confidence", "evidence"} <= set(segment)
    assert segment["phase"] == "training"
    shown = {"hours": "1.0", "hours --by owner": "ana", "phases": "2026-03-01 00:00"}
    for command, text in shown.items():
        assert main([*command.split(), "--store", store]) == 0
        assert text in capsys.readouterr().out


def test_days_whose_processes_are_no_longer_kept_still_have_their_owners(tmp_path: Path) -> None:
    """Two days and a half, of which the first two are merged, and windows that were not read."""
    day = 24 * HOUR
    recorder = Recorder(2)
    recorder.add(day // 2, [work(), rest(40)], [[PRETRAIN], [PRETRAIN]], owner="ana")
    recorder.add(day // 4, [work(), rest()], [[PRETRAIN], []], owner="ben").gap(day // 4)
    recorder.add(day, [work(), None], [[PRETRAIN], []], owner="ben")
    recorder.add(day // 2, [work(), work()], [[PRETRAIN], [PRETRAIN]], owner="cy")
    before = recorder.observe(tmp_path)
    with Store(tmp_path / "recorded.db") as store:
        while store.merge_processes(START + 2 * 86_400, limit=500):
            pass
    with LocalHistory([tmp_path / "recorded.db"]) as history:
        after = observe(history, "host", before.period, recorder.inventory)

    def told(observed: Observations, period: Period) -> dict[str, dict[State, float]]:
        return {o.owner: o.hours for o in owner_hours(observed, period)}

    assert told(after, after.period) == {
        owner: {state: pytest.approx(value) for state, value in states.items()}
        for owner, states in told(before, before.period).items()
    }
    for period in (after.period, Period(START + 5000, START + 150_000)):
        total = sum(sum(states.values()) for states in told(after, period).values())
        assert total == pytest.approx(2 * period.hours)


def test_people_read_what_held_a_gpu_back_where_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: dict[Key, Row] = {
        ("host",): Row({"signal_io_pressure_ratio": 0.4, "signal_device_ratio": 0.4}),
        ("disk", "nvme0n1"): Row({"read_await_seconds": 0.05, "read_bytes_per_second": 2e9}),
    }
    device = BlockDevice("nvme0n1", kind="nvme", link_bytes_per_second=7.9e9)
    inventory = replace(Recorder(1).inventory, block_devices=(device,))
    recorder = Recorder(1, inventory)
    recorder.add(2 * HOUR, [STARVED], [[PRETRAIN]], more=rows).observe(tmp_path)
    assert main(["hours", "--store", str(tmp_path / "recorded.db")]) == 0
    said = capsys.readouterr().out
    assert "0.80 h: local_storage" in said
    assert (
        "host GPU 0: 2.0 h starved, of which 0.80 h lost to local_storage at disk nvme0n1"
        " (2 GB/s; its link gives 7.9 GB/s), confidence 0.8" in said
    )
    assert "gap_device_ratio: on in 100 % of the gaps, in 0 % outside of them" in said
