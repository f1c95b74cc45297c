"""Healthy but awkward work: nothing here is idle, stuck or starved."""

from __future__ import annotations

import pytest

from telemetry.states import Note, State
from telemetry.window import Key
from telemetry.workload import Kind
from tests.states.stage import HEALTHY_HOST, Second, Stage, held, idle, step

NFS_BUSY: Second = {**HEALTHY_HOST, "pressure_io_some_ratio": 0.5}
SLOW_DISK: dict[Key, Second] = {
    ("host",): NFS_BUSY,
    ("disk", "nvme0n1"): {"read_await_seconds": 0.05},
}

WAITING: dict[Key, Second] = {("host",): NFS_BUSY}
REST: dict[Key, Second] = {("host",): HEALTHY_HOST}


def only(stage: Stage, kind: Kind | None, *, without: tuple[str, ...] = ()) -> set[State]:
    return {s.state for s in stage.states(kind, without=without)}


def test_a_job_that_computes_one_second_in_ten_is_alive() -> None:
    stage = Stage().cycle(1800, 10, lambda i: step(0.6, 250) if i == 0 else held())
    assert only(stage, Kind.TRAINING) == {State.BUSY}
    assert only(stage, None) == {State.BUSY}


def test_decode_is_busy_however_little_it_computes() -> None:
    # Speculative decoding on H100: utilisation 70 %, SM 0.24, 208 W, PCIe 0.3 GB/s.
    second = step(
        0.7,
        208,
        sm_active_ratio=0.24,
        tensor_active_ratio=0.04,
        dram_active_ratio=0.5,
        pcie_rx_bytes_per_second=3e8,
    )
    assert only(Stage().add(1800, second), Kind.LLM_INFERENCE) == {State.BUSY}
    assert only(Stage().add(1800, second), None) == {State.BUSY}


def test_gaps_between_requests_are_nobodys_fault() -> None:
    # The disk is slow exactly while the engine waits: still no starvation.
    stage = Stage().cycle(
        1800,
        20,
        lambda i: step(0.9, 450) if i < 6 else held(70),
        lambda i: SLOW_DISK if i >= 6 else REST,
    )
    for kind in (Kind.LLM_INFERENCE, Kind.LIGHT_INFERENCE, Kind.INFERENCE, Kind.MIXED):
        assert only(stage, kind) == {State.BUSY}


def test_prefill_bursts_are_busy() -> None:
    stage = Stage().cycle(1800, 60, lambda i: step(1.0, 690) if i < 3 else held(70))
    assert only(stage, Kind.LLM_INFERENCE) == {State.BUSY}


def test_an_engine_without_requests_is_on_standby_not_forgotten() -> None:
    states = Stage().add(300, step(0.9, 400, 70)).add(1800, held(70)).states(Kind.LLM_INFERENCE)
    assert {(s.state, s.note) for s in states[1:]} == {(State.IDLE_HELD, Note.STANDBY)}


def test_ranks_of_an_engine_that_spin_for_a_request_are_on_standby() -> None:
    spin = step(1.0, 140, 70, pcie_rx_bytes_per_second=2e5, pcie_tx_bytes_per_second=2e5)
    states = Stage().add(600, idle()).add(3600, spin).states(Kind.LLM_INFERENCE)
    assert {s.state for s in states[2:]} == {State.IDLE_HELD}


def test_a_collective_that_waits_for_minutes_is_not_yet_stuck() -> None:
    # Rank 0 writes a checkpoint for five minutes; the others spin in a barrier.
    spin = step(1.0, 130, pcie_rx_bytes_per_second=2e5, pcie_tx_bytes_per_second=2e5)
    stage = Stage().add(300, idle()).add(900, step()).add(300, spin).add(900, step())
    assert State.STUCK not in only(stage, Kind.TRAINING)


def test_a_small_kernel_at_low_power_that_moves_data_is_busy() -> None:
    small = step(1.0, 100, 5, pcie_rx_bytes_per_second=6e6, pcie_tx_bytes_per_second=4e6)
    assert only(Stage().add(600, idle()).add(3600, small), None) == {State.IDLE_FREE, State.BUSY}


def test_gradient_accumulation_is_busy() -> None:
    stage = Stage().cycle(1800, 25, lambda i: step(1.0, 690) if i < 22 else step(0.6, 300))
    assert only(stage, Kind.TRAINING) == {State.BUSY}


def test_a_short_checkpoint_is_no_starvation() -> None:
    write = held(job_write_bytes_per_second=2e9, job_blocked_ratio=0.5)
    work = step(job_write_bytes_per_second=0.0, job_blocked_ratio=0.0)
    stage = Stage().cycle(
        3600,
        600,
        lambda i: write if i < 20 else work,
        lambda i: SLOW_DISK if i < 20 else REST,
    )
    assert only(stage, Kind.TRAINING) == {State.BUSY}


@pytest.mark.parametrize("kind", [Kind.TRAINING, None])
def test_an_evaluation_phase_is_no_starvation(kind: Kind | None) -> None:
    # Every 20 minutes, 6 minutes of evaluation: bursts, the host at rest.
    stage = Stage().cycle(
        4800, 1200, lambda i: (step(0.5, 250) if i % 4 else held()) if i < 360 else step()
    )
    assert only(stage, kind) == {State.BUSY}


def test_a_notebook_with_pauses_is_held_and_never_starved() -> None:
    stage = Stage().cycle(
        7200,
        1200,
        lambda i: step(0.8, 300, 12) if i < 90 else held(12),
        lambda i: WAITING if i >= 90 else REST,
    )
    assert only(stage, None) == {State.BUSY, State.IDLE_HELD}


def test_somebody_elses_io_says_nothing_about_this_job() -> None:
    # The signals are on all the time, in gaps and outside of them.
    stage = Stage().cycle(1800, 10, lambda i: step() if i < 7 else held(), lambda i: SLOW_DISK)
    assert only(stage, Kind.TRAINING) == {State.BUSY}


def test_one_witness_is_not_enough() -> None:
    stage = Stage().cycle(
        1800,
        10,
        lambda i: step() if i < 6 else held(),
        lambda i: WAITING if i >= 6 else REST,
    )
    assert only(stage, Kind.TRAINING) == {State.BUSY}


def test_a_small_job_beside_somebody_elses_io_is_not_starved() -> None:
    # Never above half of a second: no gap-free tick, so a level says little; the job's own tasks
    # are seen, and do not wait.
    stage = Stage().add(1800, step(0.4, 200, job_blocked_ratio=0.0), SLOW_DISK)
    assert only(stage, Kind.TRAINING) == {State.BUSY}


def test_a_finished_job_beside_somebody_elses_io_is_held_not_starved() -> None:
    stage = Stage().add(300, step()).add(1800, held(job_blocked_ratio=0.0), SLOW_DISK)
    assert [s.state for s in stage.states(Kind.TRAINING)][1:] == [State.IDLE_HELD] * 6


def test_a_model_that_loads_is_told_from_forgotten_memory() -> None:
    stage = Stage().add(300, held(2))
    for gib in range(600):
        stage.add(1, held(2 + gib / 15))
    states = stage.add(300, step()).states(Kind.LLM_INFERENCE)
    assert [s.note for s in states[1:3]] == [Note.LOADING, Note.LOADING]
    assert states[-1].state is State.BUSY


def test_a_tool_that_looks_for_a_second_does_not_make_a_card_busy() -> None:
    stage = Stage().cycle(1800, 300, lambda i: idle(utilization_ratio=0.03) if i == 7 else idle())
    assert only(stage, None) == {State.IDLE_FREE}


def test_a_host_bound_job_with_long_quiet_gaps_is_alive() -> None:
    # FSDP with offload: nothing in 84 % of the seconds, PCIe bursts of 12 GB/s.
    burst = step(0.9, 300, 32, pcie_rx_bytes_per_second=1.2e10)
    stage = Stage().cycle(1800, 6, lambda i: burst if i == 0 else held(32))
    assert only(stage, Kind.TRAINING) == {State.BUSY}


def test_copies_without_a_kernel_are_work() -> None:
    stage = Stage().add(900, held(pcie_rx_bytes_per_second=5e9))
    assert only(stage, None) == {State.BUSY}
