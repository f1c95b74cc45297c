"""Waits that are shorter than a second: no second is a gap, and the loaders tell."""

from __future__ import annotations

import pytest

from telemetry.states import Cause, Place, State
from telemetry.window import Key
from telemetry.workload import Kind
from tests.states.stage import HEALTHY_HOST, Second, Stage, step

IO: Second = {**HEALTHY_HOST, "pressure_io_some_ratio": 0.7}
FULL: Second = {**HEALTHY_HOST, "pressure_cpu_some_ratio": 0.8, "cpu_busy_ratio": 1.0}
SLOW: Second = {
    "read_await_seconds": 0.3,
    "reads_per_second": 40.0,
    "read_bytes_per_second": 1.2e7,
}
DISK: Key = ("disk", "sda")
BUCKET: Key = ("mount", "/bucket")


def looping(rows: dict[Key, Second], utilization: float = 0.7, **job: float) -> Stage:
    """Steps of half a second, each with its wait: every second looks like the one before."""
    stage = Stage(texts={BUCKET: {"fstype": "fuse.s3fs"}})
    return stage.add(900, step(utilization, 400, **job), rows)


def waiting(read: float, utilization: float = 0.7) -> dict[str, float]:
    return {
        "utilization": utilization,
        "job_blocked_ratio": 0.6,
        "job_read_bytes_per_second": read,
    }


def test_a_disk_that_every_step_waits_for_is_named() -> None:
    stage = looping({("host",): IO, DISK: SLOW}, **waiting(1.2e7))
    for tier in (300, 10):
        states = stage.states(Kind.TRAINING, tier=tier)
        assert {(s.state, s.cause) for s in states} == {(State.STARVED, Cause.LOCAL_STORAGE)}
        assert {s.place for s in states} == {Place("disk", "sda", bytes_per_second=1.2e7)}
        assert all(s.lost_ratio == pytest.approx(0.3) and s.confidence <= 0.6 for s in states)


def test_a_fuse_mount_is_named_beside_a_disk_that_others_keep_slow() -> None:
    rows: dict[Key, Second] = {("host",): IO, BUCKET: {"job_open_ratio": 1.0}, DISK: SLOW}
    states = looping(rows, **waiting(0.0)).states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.STARVED, Cause.FUSE_OR_OBJECT_STORAGE)}


def test_full_processors_are_named_where_they_are_the_jobs() -> None:
    stage = looping({("host",): FULL}, job_blocked_ratio=0.0)
    for share, expected in (
        (0.9, (State.STARVED, Cause.CPU_DATALOADER)),
        (0.1, (State.BUSY, None)),
    ):
        states = stage.states(Kind.TRAINING, processor_share=share)
        assert {(s.state, s.cause) for s in states} == {expected}


@pytest.mark.parametrize(
    ("rows", "job", "kind"),
    [
        pytest.param({DISK: SLOW}, waiting(1.2e7, 0.93), Kind.TRAINING, id="next to nothing lost"),
        pytest.param({DISK: SLOW}, waiting(1.2e7), Kind.LLM_INFERENCE, id="an engine"),
        pytest.param({DISK: SLOW}, waiting(1.2e7), None, id="what nobody named"),
        pytest.param({DISK: SLOW}, {"job_blocked_ratio": 0.1}, Kind.TRAINING, id="others' disk"),
        pytest.param({DISK: SLOW}, {}, Kind.TRAINING, id="the job's tasks are unknown"),
        pytest.param(
            {("host",): HEALTHY_HOST}, waiting(1.2e7), Kind.TRAINING, id="one witness alone"
        ),
    ],
)
def test_a_gpu_that_is_slow_on_its_own_is_busy(
    rows: dict[Key, Second], job: dict[str, float], kind: Kind | None
) -> None:
    states = looping({("host",): IO, **rows}, **job).states(kind)
    assert {s.state for s in states} == {State.BUSY}


def test_loaders_that_rest_now_and_then_keep_up() -> None:
    stage = Stage().cycle(
        900,
        10,
        lambda i: step(0.7, 400, job_blocked_ratio=0.0 if i in (3, 7) else 0.6),
        lambda _: {("host",): IO, DISK: SLOW},
    )
    assert {s.state for s in stage.states(Kind.TRAINING)} == {State.BUSY}
