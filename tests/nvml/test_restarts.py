"""When children follow one another, and how many: kills, crashes, hangs, drivers that are slow."""

import signal
import time
from collections.abc import Callable

import psutil
import pytest

from agent.nvml.client import NvmlEventKind, NvmlTick
from agent.nvml.process import ChildFailed
from agent.nvml.restarts import FREE_KILLS, FREE_RESTARTS, Restarts
from tests.nvml.conftest import Bench

Stage = Callable[..., Bench]


def healthy(tick: NvmlTick) -> int:
    return sum(gpu.error is None for gpu in tick.gpus)


def kill(bench: Bench, number: signal.Signals) -> None:
    assert bench.client.pid is not None
    psutil.Process(bench.client.pid).send_signal(number)


def lost_ticks(bench: Bench, gpus: int, at_most: int = 50) -> int:
    """Ticks until all GPUs are read again, each of which waits as the daemon's do."""
    for lost in range(at_most):
        if healthy(bench.tick(0.5)) == gpus:
            return lost
    raise AssertionError(f"not all GPUs were read again within {at_most} ticks")


@pytest.mark.parametrize(
    ("kills", "numbers"),
    [
        pytest.param(4, (signal.SIGKILL, signal.SIGSEGV), id="a sample"),
        pytest.param(
            50, (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT), id="fifty", marks=pytest.mark.long
        ),
    ],
)
def test_a_child_killed_or_crashed_costs_at_most_two_ticks_each_time(
    stage: Stage, kills: int, numbers: tuple[signal.Signals, ...]
) -> None:
    bench = stage("gpus=8\n")
    bench.tick()
    process = psutil.Process()
    before = process.num_fds(), process.num_threads()
    losses = []
    for kill_number in range(kills):
        kill(bench, numbers[kill_number % len(numbers)])
        losses.append(lost_ticks(bench, 8))
    assert max(losses) <= 2, losses
    assert bench.client.restarts_total == kills
    assert (process.num_fds(), process.num_threads()) == before
    assert [c for c in process.children() if c.status() == psutil.STATUS_ZOMBIE] == []


def test_a_library_that_crashes_after_each_first_tick_is_not_started_each_second(
    stage: Stage,
) -> None:
    # 0.15 s after it was loaded, each time; the call belongs to no GPU that could be left out.
    bench = stage("time_base=start\nnvmlEventSetWait_v2=CRASH@0.15\n")
    ticks = []
    for _ in range(40):
        ticks.append(bench.tick(0.5))
        time.sleep(0.1)
    assert sum(map(healthy, ticks)) >= FREE_RESTARTS
    assert FREE_RESTARTS < bench.client.restarts_total <= FREE_RESTARTS + 3
    assert any("SIGSEGV in nvmlEventSetWait_v2" in str(tick.missing) for tick in ticks)


def test_children_that_die_young_are_replaced_with_growing_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("agent.nvml.restarts.time.monotonic", lambda: now)
    restarts = Restarts()

    def wait(*, from_outside: bool = False, ticks: int = 1) -> float:
        """Seconds between a death and the next birth."""
        nonlocal now
        restarts.born()
        for _ in range(ticks):
            restarts.answered()
        failed = ChildFailed("it died", None, "", hung=False)
        failed.from_outside = from_outside
        restarts.died(failed)
        begun = now
        while not restarts.due():
            now += 0.5
        return now - begun

    assert [wait() for _ in range(FREE_RESTARTS)] == [0.0] * FREE_RESTARTS
    assert [wait() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert wait(ticks=3) == 0.0  # one that was sound for a while forgives all before it
    assert [wait() for _ in range(FREE_RESTARTS + 1)][-1] == 1.0
    restarts = Restarts()
    assert [wait(from_outside=True) for _ in range(FREE_KILLS)] == [0.0] * FREE_KILLS
    assert wait(from_outside=True) == 1.0


def test_a_call_that_belongs_to_no_gpu_has_the_same_deadline(stage: Stage) -> None:
    bench = stage("gpus=2\nnvmlEventSetWait_v2=HANG@3-8\n", deadline=0.5)
    assert healthy(bench.tick()) == 2
    assert healthy(bench.tick()) == 2
    ticks = [bench.tick(0.3) for _ in range(6)]
    assert bench.client.restarts_total >= 1
    kinds = [event.kind for event in bench.client.take_events()]
    assert kinds[0] is NvmlEventKind.CHILD_HUNG
    assert NvmlEventKind.GPU_LOST not in kinds  # no GPU is to blame
    assert healthy(ticks[0]) == 0
    bench.until(lambda tick: healthy(tick) == 2)


def test_a_driver_that_takes_four_seconds_a_tick_is_sampled_more_slowly(stage: Stage) -> None:
    # A call of each GPU takes a second; none is near the deadline of one call.
    bench = stage("gpus=4\nnvmlDeviceGetUtilizationRates.latency_us=1000000\n", deadline=3.0)
    answers = [bench.tick(0.5) for _ in range(22)]  # at least 4 s a tick, half a second a wait
    read = [tick for tick in answers if healthy(tick) == 4]
    assert len(read) >= 2
    assert all(tick.waiting for tick in answers if not tick.gpus)
    assert bench.client.restarts_total == 0
    assert bench.client.take_events() == ()
