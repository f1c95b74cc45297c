"""Troubles are found, with the cause and the place."""

from __future__ import annotations

import pytest

from telemetry.states import Cause, State
from telemetry.window import Key
from telemetry.workload import Kind
from tests.states.stage import GPU, HEALTHY_HOST, Second, Stage, held, idle, step

IO: Second = {**HEALTHY_HOST, "pressure_io_some_ratio": 0.6, "cpu_iowait_ratio": 0.3}
REST: dict[Key, Second] = {("host",): HEALTHY_HOST}
MOUNT = ("mount", "/data")


def starving(
    rows: dict[Key, Second],
    *,
    waits: float = 0.6,
    rest: dict[Key, Second] | None = None,
    fstype: str = "nfs4",
) -> Stage:
    """Six seconds of work and four of waiting, with the host's signs in the waiting alone."""
    quiet = rest or {
        k: (HEALTHY_HOST if k == ("host",) else dict.fromkeys(v, 0.0)) for k, v in rows.items()
    }
    stage = Stage(texts={MOUNT: {"fstype": fstype}})
    return stage.cycle(
        1800,
        10,
        lambda i: step(job_blocked_ratio=0.0) if i < 6 else held(job_blocked_ratio=waits),
        lambda i: rows if i >= 6 else quiet,
    )


CASES = [
    (
        Cause.LOCAL_STORAGE,
        "disk sda",
        starving({("host",): IO, ("disk", "sda"): {"read_await_seconds": 0.05}}),
    ),
    (
        Cause.NETWORK_STORAGE,
        "mount /data",
        starving(
            {("host",): IO, MOUNT: {"read_round_trip_seconds": 0.4, "read_bytes_per_second": 1e8}}
        ),
    ),
    (
        Cause.NETWORK_STORAGE,
        "mount /data",
        starving(
            {
                ("host",): IO,
                MOUNT: {"read_bytes_per_second": 1e8},
                ("nic", "eth0"): {"rx_link_ratio": 0.95},
            }
        ),
    ),
    (
        Cause.FUSE_OR_OBJECT_STORAGE,
        "mount /data",
        starving(
            {
                ("host",): IO,
                MOUNT: {"read_bytes_per_second": 1e8},
                ("nic", "eth0"): {"rx_link_ratio": 0.95},
            },
            fstype="fuse.s3fs",
        ),
    ),
    (
        Cause.HOST_MEMORY,
        "gap_memory_ratio",
        starving(
            {
                ("host",): {
                    **IO,
                    "pressure_memory_some_ratio": 0.3,
                    "swap_in_bytes_per_second": 5e7,
                },
                ("disk", "sda"): {"read_await_seconds": 0.05},
            }
        ),
    ),
]


@pytest.mark.parametrize(("cause", "place", "stage"), CASES)
def test_a_starved_job_gets_its_cause_and_place(cause: Cause, place: str, stage: Stage) -> None:
    states = stage.states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.STARVED, cause)}
    assert all(0.35 < (s.lost_ratio or 0) < 0.45 for s in states)
    assert all(any(place in line for line in s.evidence) for s in states)


def test_a_loader_short_of_processors_is_told_by_the_jobs_own_processes() -> None:
    full: dict[Key, Second] = {
        ("host",): {**HEALTHY_HOST, "pressure_cpu_some_ratio": 0.8, "cpu_busy_ratio": 1.0}
    }
    stage = starving(full, waits=0.0)
    states = stage.states(Kind.TRAINING, processor_share=0.8)
    assert {(s.state, s.cause) for s in states} == {(State.STARVED, Cause.CPU_DATALOADER)}
    # Somebody else's processes fill the host: no second witness, no verdict.
    states = stage.states(Kind.TRAINING, processor_share=0.05)
    assert {s.state for s in states} == {State.BUSY}


def test_checkpoints_that_stop_the_job_are_no_input_starvation() -> None:
    write = held(job_write_bytes_per_second=1e9, job_blocked_ratio=0.5)
    work = step(job_write_bytes_per_second=0.0, job_blocked_ratio=0.0)
    stage = Stage().cycle(
        1800,
        100,
        lambda i: write if i < 40 else work,
        lambda i: {("host",): IO} if i < 40 else REST,
    )
    states = stage.states(Kind.FULL_FINETUNING)
    assert {(s.state, s.cause) for s in states} == {(State.STARVED, Cause.CHECKPOINTING)}


def test_starvation_of_what_nobody_named_needs_a_quarter_of_an_hour_and_less_is_claimed() -> None:
    rows = {("host",): IO, ("disk", "sda"): {"read_await_seconds": 0.05}}
    named = starving(rows).states(Kind.TRAINING)
    unnamed = starving(rows).states(None)
    assert {s.state for s in unnamed} == {State.STARVED}
    assert max(s.confidence for s in unnamed) < min(s.confidence for s in named)
    short = Stage()
    short.gpu, short.rows = starving(rows).gpu[:600], starving(rows).rows[:600]
    assert {s.state for s in short.states(None)} == {State.BUSY}


def test_without_pressure_files_the_cause_stands_with_less_confidence() -> None:
    rows: dict[Key, Second] = {
        ("host",): {"cpu_busy_ratio": 0.2},
        ("disk", "sda"): {"read_await_seconds": 0.05},
    }
    rest: dict[Key, Second] = {
        ("host",): {"cpu_busy_ratio": 0.2},
        ("disk", "sda"): {"read_await_seconds": 0.0},
    }
    without = starving(rows, rest=rest).states(Kind.TRAINING)
    with_psi = CASES[0][2].states(Kind.TRAINING)
    assert {s.cause for s in without} == {Cause.LOCAL_STORAGE}
    assert max(s.confidence for s in without) < min(s.confidence for s in with_psi)


def test_gaps_without_host_columns_have_an_unknown_cause_and_are_busy() -> None:
    stage = Stage().cycle(1800, 10, lambda i: step() if i < 6 else held(), lambda i: {})
    states = stage.states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.BUSY, Cause.UNKNOWN)}


def test_a_hung_collective_is_stuck_after_its_time_out() -> None:
    spin = step(
        1.0,
        130,
        pcie_rx_bytes_per_second=2e5,
        pcie_tx_bytes_per_second=2e5,
        sm_active_ratio=0.15,
        tensor_active_ratio=0.0,
    )
    stage = Stage().add(300, idle()).add(600, step(sm_active_ratio=0.8)).add(3600, spin)
    for tier in (300, 10):
        states = stage.states(Kind.TRAINING, tier=tier)
        assert {s.state for s in states[-3000 // tier :]} == {State.STUCK}
    # Tensor cores at work are no hung collective, whatever the power says.
    working = Stage().add(300, idle()).add(3600, {**spin, "tensor_active_ratio": 0.3})
    assert State.STUCK not in {s.state for s in working.states(Kind.TRAINING)}
    blind = stage.states(Kind.TRAINING, without=("pcie",))
    assert State.STUCK not in {s.state for s in blind}
    assert blind[-1].confidence <= 0.5


def test_memory_without_a_process_is_orphaned_after_minutes() -> None:
    orphan = idle(memory_used_bytes=30 * 2.0**30, power_watts=100.0)
    states = Stage().add(300, idle()).add(900, orphan).states()
    assert [s.state for s in states] == [State.IDLE_FREE] + [State.ORPHAN_HELD] * 3
    # In short windows the first minutes are not yet one.
    short = Stage().add(60, idle()).add(120, orphan).add(60, idle()).states(tier=10)
    assert State.ORPHAN_HELD not in {s.state for s in short}


def test_a_process_list_that_is_empty_while_kernels_run_proves_no_orphan() -> None:
    stage = Stage().add(900, step(process_count=0.0)).add(900, held(process_count=0.0))
    assert {s.state for s in stage.states()[3:]} == {State.IDLE_HELD}


def test_the_drivers_own_share_is_not_held() -> None:
    assert {s.state for s in Stage().add(900, idle(memory_used_bytes=9.2e8)).states()} == {
        State.IDLE_FREE
    }


def test_sources_that_contradict_each_other_are_unknown() -> None:
    stage = Stage().add(300, idle()).add(900, step(0.98, 600, sm_active_ratio=0.0))
    assert {s.state for s in stage.states()[1:]} == {State.UNKNOWN}
    assert {s.state for s in Stage().add(900, idle(power_watts=500.0)).states()} == {State.UNKNOWN}


def test_heat_is_told_and_is_no_starvation() -> None:
    states = Stage().add(900, step(throttle_thermal_ratio=0.4)).states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.BUSY, Cause.THROTTLED)}


def test_a_full_link_is_told_and_is_no_starvation() -> None:
    second = step(
        0.9,
        250,
        sm_active_ratio=0.1,
        pcie_rx_bytes_per_second=2.7e10,
        pcie_link_generation=4.0,
        pcie_link_width=16.0,
    )
    states = Stage().add(900, second).states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.BUSY, Cause.PCIE)}


def test_a_gpu_that_answers_errors_is_unknown() -> None:
    stage = Stage(texts={GPU: {"error": "GPU_IS_LOST"}}).add(300, {"power_limit_watts": 700.0})
    (state,) = stage.states()
    assert state.state is State.UNKNOWN
    assert "GPU_IS_LOST" in state.evidence[0]
