"""Causes beyond the plain ones, and their places: loaders that never rest, FUSE, gradients."""

from __future__ import annotations

import pytest

from telemetry.states import Cause, Place, State
from telemetry.window import Key
from telemetry.workload import Kind
from tests.states.stage import HEALTHY_HOST, Second, Stage, held, step

IO: Second = {**HEALTHY_HOST, "pressure_io_some_ratio": 0.6}
FULL: Second = {**HEALTHY_HOST, "pressure_cpu_some_ratio": 0.8, "cpu_busy_ratio": 1.0}
DISK: dict[Key, Second] = {
    ("disk", "sda"): {"read_await_seconds": 0.9, "reads_per_second": 0.1},
    ("disk", "loop0"): {
        "read_await_seconds": 0.4,
        "reads_per_second": 30.0,
        "read_bytes_per_second": 1.2e7,
    },
}
BUCKET: Key = ("mount", "/bucket")


def loading(rows: dict[Key, Second], *, blocked: float | None, read: float = 1.2e7) -> Stage:
    """Work and gaps in turns; the loaders read through both, since their queue is never full."""
    job: Second = {"job_read_bytes_per_second": read}
    if blocked is not None:
        job["job_blocked_ratio"] = blocked
    return Stage(texts={BUCKET: {"fstype": "fuse.s3fs"}}).cycle(
        1200, 10, lambda i: step(**job) if i < 6 else held(**job), lambda _: rows
    )


def test_loaders_that_never_rest_do_not_keep_up() -> None:
    states = loading({("host",): IO, **DISK}, blocked=0.6).states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.STARVED, Cause.LOCAL_STORAGE)}
    # The disk at which reads wait, not the one that answered once and late.
    assert {s.place for s in states} == {Place("disk", "loop0", bytes_per_second=1.2e7)}
    assert all(s.confidence <= 0.6 for s in states)


@pytest.mark.parametrize("blocked", [0.0, 0.1, None])
def test_a_disk_that_others_keep_busy_explains_nothing(blocked: float | None) -> None:
    states = loading({("host",): IO, **DISK}, blocked=blocked).states(Kind.TRAINING)
    assert {s.state for s in states} == {State.BUSY}


def test_loaders_that_rest_while_the_gpu_pauses_keep_up() -> None:
    stage = Stage().cycle(
        1200,
        10,
        lambda i: step(job_blocked_ratio=0.6) if i < 6 else held(job_blocked_ratio=0.0),
        lambda _: {("host",): IO, **DISK},
    )
    assert {s.state for s in stage.states(Kind.TRAINING)} == {State.BUSY}


def test_workers_that_compute_without_a_rest_do_not_keep_up() -> None:
    stage = loading({("host",): FULL}, blocked=0.0, read=0.0)
    states = stage.states(Kind.TRAINING, processor_share=0.9)
    assert {(s.state, s.cause) for s in states} == {(State.STARVED, Cause.CPU_DATALOADER)}
    states = stage.states(Kind.TRAINING, processor_share=0.1)
    assert {s.state for s in states} == {State.BUSY}


def test_a_fuse_mount_is_told_by_a_file_that_the_job_has_open_on_it() -> None:
    rows: dict[Key, Second] = {("host",): IO, BUCKET: {"job_open_ratio": 1.0}}
    states = loading(rows, blocked=0.6, read=0.0).states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.STARVED, Cause.FUSE_OR_OBJECT_STORAGE)}
    assert {s.place for s in states} == {Place("mount", "/bucket", "fuse.s3fs")}


@pytest.mark.parametrize(
    ("opened", "read"),
    [
        pytest.param(0.0, 0.0, id="no file open on it"),
        pytest.param(1.0, 5e7, id="its bytes come from block devices"),
    ],
)
def test_a_fuse_mount_that_the_job_does_not_wait_for_is_not_blamed(
    opened: float, read: float
) -> None:
    rows: dict[Key, Second] = {("host",): IO, BUCKET: {"job_open_ratio": opened}}
    states = loading(rows, blocked=0.6, read=read).states(Kind.TRAINING)
    assert {s.cause for s in states} == {Cause.UNKNOWN}


def exchanging(tx: float) -> Stage:
    """Gaps while the port receives at its rate."""
    rest: Second = {"rx_bytes_per_second": 1e6, "tx_bytes_per_second": 1e6, "rx_link_ratio": 0.001}
    full: Second = {"rx_bytes_per_second": 1.2e9, "tx_bytes_per_second": tx, "rx_link_ratio": 0.95}
    speed: Second = {"speed_bits_per_second": 1e10}
    return Stage().cycle(
        1200,
        10,
        lambda i: step(job_blocked_ratio=0.0) if i < 6 else held(job_blocked_ratio=0.0),
        lambda i: {
            ("host",): HEALTHY_HOST,
            ("nic", "eth0"): {**(rest if i < 6 else full), **speed},
        },
    )


def test_gradients_over_a_full_link_are_communication_and_no_starvation() -> None:
    states = exchanging(1.2e9).states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.BUSY, Cause.COMMUNICATION)}
    place = states[0].place
    assert place is not None
    assert (place.measurement, place.name) == ("nic", "eth0")
    assert place.ceiling_bytes_per_second == 1.25e9
    # One way alone is a download, of what nobody knows.
    assert {s.cause for s in exchanging(1e7).states(Kind.TRAINING)} == {Cause.UNKNOWN}
    # An engine's gaps are requests that did not come.
    assert {s.cause for s in exchanging(1.2e9).states(Kind.LLM_INFERENCE)} == {None}


def test_a_training_that_mostly_moves_bytes_over_nvlink_is_told_so() -> None:
    second = step(0.99, 300, sm_active_ratio=0.15, nvlink_rx_bytes_per_second=9e10)
    stage = Stage().add(600, second)
    assert {(s.state, s.cause) for s in stage.states(Kind.TRAINING)} == {
        (State.BUSY, Cause.COMMUNICATION)
    }
    assert {s.cause for s in stage.states(Kind.LLM_INFERENCE)} == {None}
    working = step(0.99, 600, sm_active_ratio=0.7, nvlink_rx_bytes_per_second=9e10)
    assert {s.cause for s in Stage().add(600, working).states(Kind.TRAINING)} == {None}


def test_a_rate_is_compared_with_the_seconds_that_it_was_counted_over() -> None:
    """Processes are read every 5 s: what a checkpoint wrote is told when it may be over."""

    def second(i: int) -> Second:
        row = held() if i in (6, 7, 8) else step()
        if i % 5 == 4:
            row |= {"job_write_bytes_per_second": 2e8 if i == 9 else 0.0, "job_blocked_ratio": 0.0}
        return row

    stage = Stage().cycle(
        1200,
        20,
        second,
        lambda i: {("host",): IO if i in (6, 7, 8) else HEALTHY_HOST},
    )
    states = stage.states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.STARVED, Cause.CHECKPOINTING)}


def computing(workers: float | None, host: Second) -> Stage:
    """Work and gaps in turns, with that share of the workers on a processor or ready for one."""
    job = {} if workers is None else {"job_computing_ratio": workers}
    return Stage().cycle(
        1200,
        10,
        lambda i: (
            step(job_blocked_ratio=0.0, **job) if i < 6 else held(job_blocked_ratio=0.0, **job)
        ),
        lambda _: {("host",): host},
    )


@pytest.mark.parametrize(
    ("workers", "share", "starved"),
    [
        pytest.param(1.0, 0.3, True, id="others have the processors too"),
        pytest.param(0.5, 0.9, False, id="half of them rest"),
        pytest.param(0.0, None, False, id="others fill the host"),
        pytest.param(None, 0.9, True, id="workers unknown"),
        pytest.param(None, 0.3, False, id="workers unknown, others fill the host"),
    ],
)
def test_workers_that_never_rest_are_short_of_processors(
    workers: float | None, share: float | None, starved: bool
) -> None:
    states = computing(workers, FULL).states(Kind.TRAINING, processor_share=share)
    expected = (State.STARVED, Cause.CPU_DATALOADER) if starved else (State.BUSY, Cause.UNKNOWN)
    assert {(s.state, s.cause) for s in states} == {expected}


def test_workers_that_never_rest_on_a_host_with_processors_left_are_told_and_not_blamed() -> None:
    states = computing(1.0, HEALTHY_HOST).states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.BUSY, Cause.UNKNOWN)}
    assert all("more workers may help" in s.evidence[-1] for s in states)


@pytest.mark.parametrize("looks_at", [pytest.param(7, id="gaps"), pytest.param(2, id="work")])
def test_few_readings_that_fall_on_gaps_or_on_work_alone_tell_the_same(looks_at: int) -> None:
    """A reading every 10 s of work and gaps in turns of 10 s: it never sees the other half."""
    stage = Stage().cycle(
        600,
        10,
        lambda i: (
            (step() if i < 6 else held())
            | (
                {"job_blocked_ratio": 0.6, "job_read_bytes_per_second": 1e7}
                if i == looks_at
                else {}
            )
        ),
        lambda _: {("host",): IO, **DISK},
    )
    states = stage.states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.STARVED, Cause.LOCAL_STORAGE)}
    assert all(s.confidence <= 0.6 for s in states)


def in_turns(host: Second, waits: int, computes: int, **rows: Second) -> Stage:
    """Gaps in turns, and ten looks at the loaders in which they wait, compute, or rest."""
    looks: list[Second] = [
        *[{"job_blocked_ratio": 0.5, "job_computing_ratio": 0.5}] * waits,
        *[{"job_blocked_ratio": 0.0, "job_computing_ratio": 1.0}] * computes,
        *[{"job_blocked_ratio": 0.0, "job_computing_ratio": 0.0}] * (10 - waits - computes),
    ]
    stage = Stage()
    for i in range(1200):
        job = looks[i * 7 % 10]
        at: dict[Key, Second] = {("host",): host}
        at.update({("disk", name): row for name, row in rows.items()})
        stage.add(1, step(**job) if i % 10 < 6 else held(**job), at)
    return stage


SHORT: Second = {**IO, "pressure_memory_some_ratio": 0.4, "refaults_per_second": 5000.0}


@pytest.mark.parametrize(
    ("waits", "computes", "starved"),
    [
        pytest.param(6, 4, True, id="pages are freed by those who need them"),
        pytest.param(6, 1, False, id="they rest"),
        pytest.param(3, 7, False, id="they compute for the most part"),
    ],
)
def test_loaders_that_wait_and_compute_in_turns_never_rest(
    waits: int, computes: int, starved: bool
) -> None:
    states = in_turns(SHORT, waits, computes).states(Kind.TRAINING)
    expected = (State.STARVED, Cause.HOST_MEMORY) if starved else (State.BUSY, Cause.UNKNOWN)
    assert {(s.state, s.cause) for s in states} == {expected}


def test_loaders_that_only_compute_do_not_wait_for_a_disk_that_others_keep_busy() -> None:
    states = in_turns(IO, 0, 10, sda=DISK["disk", "sda"]).states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.BUSY, Cause.UNKNOWN)}
    both = {**IO, **{k: FULL[k] for k in ("pressure_cpu_some_ratio", "cpu_busy_ratio")}}
    states = in_turns(both, 0, 10, sda=DISK["disk", "sda"]).states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.STARVED, Cause.CPU_DATALOADER)}
