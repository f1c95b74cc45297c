"""What the client survives: hangs, crashes, lost GPUs, drivers that come and go."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from agent.nvml.client import NvmlClient, NvmlEventKind, NvmlTick
from agent.nvml.process import NvmlProcess
from tests.fakenvml.staged import Scenario
from tests.nvml.conftest import Bench, by_index

Stage = Callable[..., Bench]
EIGHT = "gpus=8\n"


def kinds(bench: Bench) -> list[NvmlEventKind]:
    return [event.kind for event in bench.client.take_events()]


def healthy(tick: NvmlTick) -> list[int | None]:
    return [gpu.index for gpu in tick.gpus if gpu.error is None]


def child_of(bench: Bench) -> psutil.Process:
    assert bench.client.pid is not None
    return psutil.Process(bench.client.pid)


@pytest.mark.parametrize("call", ["nvmlDeviceGetUtilizationRates", "nvmlDeviceGetFieldValues"])
def test_one_gpu_hangs_and_the_other_seven_go_on(stage: Stage, call: str) -> None:
    bench = stage(EIGHT + f"gpu3.{call}=HANG@3\n", deadline=0.5)
    assert healthy(bench.tick()) == list(range(8))
    assert healthy(bench.tick()) == list(range(8))
    hung = bench.tick()  # waits for the deadline, then asks a new child
    assert healthy(hung) == [0, 1, 2, 4, 5, 6, 7]
    stuck = by_index(hung)[3]
    assert stuck.uuid == bench.uuid(3)
    assert stuck.name == "NVIDIA H100 80GB HBM3"
    assert stuck.error == f"GPU 3: {call} has not returned for 0.5 s"
    assert bench.client.restarts_total == 1
    events = {event.kind: event for event in bench.client.take_events()}
    assert set(events) == {NvmlEventKind.CHILD_HUNG, NvmlEventKind.GPU_LOST}
    assert events[NvmlEventKind.GPU_LOST].gpu_uuid == bench.uuid(3)
    for _ in range(5):
        assert healthy(bench.tick()) == [0, 1, 2, 4, 5, 6, 7]
    assert bench.client.restarts_total == 1  # it costs the deadline once


def test_a_tick_does_not_wait_longer_than_told(stage: Stage) -> None:
    bench = stage(EIGHT + "gpu0.nvmlDeviceGetUtilizationRates=HANG@2\n", deadline=2)
    bench.tick()
    waiting = bench.tick(0.1)
    assert (waiting.gpus, waiting.waiting) == ((), True)
    assert waiting.missing == "the driver has not answered yet"


def test_a_gpu_that_hangs_from_the_start_is_left_out(stage: Stage) -> None:
    bench = stage(EIGHT + "gpu7.nvmlDeviceGetUUID=HANG\n", deadline=0.5)
    tick = bench.tick()
    assert healthy(tick) == list(range(7))
    assert (tick.gpus[7].index, tick.gpus[7].uuid) == (7, None)
    assert "nvmlDeviceGetUUID has not returned" in str(tick.gpus[7].error)


def test_several_gpus_hang_one_after_the_other(stage: Stage) -> None:
    bench = stage(
        EIGHT + "gpu1.nvmlDeviceGetTemperature=HANG\ngpu6.nvmlDeviceGetClockInfo=HANG\n",
        deadline=0.5,
    )
    assert healthy(bench.tick()) == [0, 2, 3, 4, 5, 7]
    assert bench.client.restarts_total == 2


def test_a_slow_driver_is_waited_for_and_not_killed(stage: Stage) -> None:
    # Each call takes 0.1 s: a tick of 8 GPUs takes far longer than the deadline of one call.
    bench = stage(EIGHT + "latency_us=12000\n", deadline=0.5)
    ticks = [bench.tick(0.2) for _ in range(12)]
    assert any(tick.waiting for tick in ticks)
    assert healthy(bench.tick()) == list(range(8))
    assert bench.client.restarts_total == 0


def test_a_stuck_gpu_is_taken_back_once_it_answers(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.nvml.absent.FIRST_PROBE", 0.2)
    bench = stage(EIGHT + "gpu3.nvmlDeviceGetUtilizationRates=HANG@3-20\n", deadline=0.5)
    bench.tick()
    bench.tick()
    assert healthy(bench.tick()) == [0, 1, 2, 4, 5, 6, 7]
    kinds(bench)
    bench.advance(20)
    back = bench.until(lambda tick: healthy(tick) == list(range(8)))
    assert by_index(back)[3].uuid == bench.uuid(3)
    assert kinds(bench) == [NvmlEventKind.GPU_RETURNED]


def test_a_killed_child_costs_at_most_two_ticks(stage: Stage) -> None:
    bench = stage(EIGHT)
    bench.tick()
    for _ in range(5):
        child_of(bench).kill()
        missed = 0
        while healthy(bench.tick(5)) != list(range(8)):
            missed += 1
        assert missed <= 2
    assert bench.client.restarts_total == 5
    assert set(kinds(bench)) == {NvmlEventKind.CHILD_CRASHED}


def test_a_crash_that_repeats_on_one_gpu_leaves_it_out(stage: Stage) -> None:
    bench = stage(EIGHT + "gpu4.nvmlDeviceGetTemperature=CRASH@2\n")
    bench.tick()
    tick = bench.tick()
    assert healthy(tick) == [0, 1, 2, 3, 5, 6, 7]
    assert "SIGSEGV in nvmlDeviceGetTemperature of GPU 4" in str(by_index(tick)[4].error)
    assert bench.client.restarts_total == 2
    crashed = NvmlEventKind.CHILD_CRASHED
    assert kinds(bench) == [crashed, crashed, NvmlEventKind.GPU_LOST]


def test_a_library_that_crashes_at_once_is_tried_again_with_patience(stage: Stage) -> None:
    bench = stage("nvmlInitWithFlags=CRASH@0-5\n")
    tick = bench.tick()
    assert tick.gpus == ()
    assert "SIGSEGV in nvmlInit" in str(tick.missing)
    assert "SIGSEGV" in str(bench.tick().missing)
    assert bench.client.restarts_total == 1  # the second tick came too soon for another try
    bench.advance(5)
    bench.until(lambda tick: healthy(tick) == [0])


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("DRIVER_NOT_LOADED", NvmlEventKind.DRIVER_MISSING, "kernel module is not loaded"),
        ("LIB_RM_VERSION_MISMATCH", NvmlEventKind.DRIVER_MISMATCH, "reload the module or reboot"),
    ],
)
def test_a_driver_that_comes_later_is_found(
    stage: Stage, code: str, kind: NvmlEventKind, words: str
) -> None:
    bench = stage(f"nvmlInitWithFlags={code}@0-5\n")
    for _ in range(3):
        tick = bench.tick()
        assert tick.gpus == ()
        assert words in str(tick.missing)
    assert kinds(bench) == [kind]  # said once
    bench.advance(5)
    bench.until(lambda tick: healthy(tick) == [0])
    assert kinds(bench) == [NvmlEventKind.DRIVER_FOUND]


def test_without_the_library_the_reason_is_said_and_nothing_is_raised(tmp_path: Path) -> None:
    client = NvmlClient(environment={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    try:
        tick = client.tick()
        assert (tick.gpus, tick.missing) == ((), "libnvidia-ml.so.1 is not installed")
        assert client.pid is None  # no process waits for a driver that is not there
    finally:
        client.close()


def test_a_driver_that_goes_away_under_us_is_looked_for_again(stage: Stage) -> None:
    bench = stage("nvmlDeviceGetUtilizationRates=DRIVER_NOT_LOADED@2-4\n")
    assert healthy(bench.tick()) == [0]
    assert "not loaded" in str(bench.tick().missing)
    bench.advance(5)
    bench.until(lambda tick: healthy(tick) == [0])


def test_a_lost_gpu_keeps_its_row_and_is_reopened_by_its_uuid(stage: Stage) -> None:
    bench = stage(EIGHT + "gpu2.lost=2-6\n")
    bench.tick()
    lost = by_index(bench.tick())[2]
    assert (lost.uuid, lost.error) == (bench.uuid(2), "GPU is lost")
    assert kinds(bench) == [NvmlEventKind.GPU_LOST]
    pid = bench.client.pid
    ticks = [bench.tick() for _ in range(8)]
    assert healthy(ticks[0]) == [0, 1, 3, 4, 5, 6, 7]
    assert healthy(ticks[-1]) == list(range(8))
    assert kinds(bench) == [NvmlEventKind.GPU_RETURNED]
    assert bench.client.pid == pid  # nobody else lost a tick for it


def test_a_lost_gpu_is_itself_where_the_order_changed_meanwhile(stage: Stage) -> None:
    bench = stage("gpus=3\ngpu1.lost=2-6\norder=2,0,1@4-1000\n")
    bench.tick()
    assert by_index(bench.tick())[1].error == "GPU is lost"
    back = bench.until(lambda tick: len(healthy(tick)) == 3)
    assert sorted(str(gpu.uuid) for gpu in back.gpus) == [bench.uuid(n) for n in range(3)]


def test_a_gpu_that_vanishes_from_the_list_keeps_its_row_and_returns(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.nvml.absent.FIRST_PROBE", 0.2)
    bench = stage("gpus=3\ngpu1.gone=2-30\n")
    bench.tick()
    gone = bench.until(lambda tick: any("no longer lists" in str(g.error) for g in tick.gpus))
    assert [(g.index, g.uuid, g.error is None) for g in gone.gpus] == [
        (0, bench.uuid(0), True),
        (1, bench.uuid(2), True),  # it moved up
        (None, bench.uuid(1), False),
    ]
    assert NvmlEventKind.GPU_COUNT_CHANGED in kinds(bench)
    bench.advance(30)
    back = bench.until(lambda tick: len(healthy(tick)) == 3)
    assert [gpu.uuid for gpu in back.gpus] == [bench.uuid(i) for i in range(3)]
    assert NvmlEventKind.GPU_RETURNED in kinds(bench)


def test_readings_follow_the_uuid_when_the_order_changes(stage: Stage) -> None:
    bench = stage("gpus=3\ngpu0.temp=40\ngpu1.temp=41\ngpu2.temp=42\norder=2,0,1@2\n")
    bench.tick()
    tick = [bench.tick() for _ in range(6)][-1]
    assert [gpu.uuid for gpu in tick.gpus] == [bench.uuid(i) for i in (2, 0, 1)]
    assert [gpu.values["temperature_celsius"] for gpu in tick.gpus] == [42, 40, 41]


def test_codes_that_change_from_call_to_call_cost_only_their_metric(stage: Stage) -> None:
    bench = stage(
        "gpu0.nvmlDeviceGetMemoryInfo_v2=UNKNOWN@2-3\ngpu0.nvmlDeviceGetUtilizationRates=3@2-4\n"
        "gpu0.nvmlDeviceGetMemoryInfo_v2=NO_DATA@4-5\n"
    )
    seen = [bench.tick().gpus[0] for _ in range(6)]
    assert [("memory_used_bytes" in g.values, "utilization_ratio" in g.values) for g in seen] == [
        (True, True),
        (False, False),
        (True, False),
        (False, True),
        (True, True),
        (True, True),
    ]
    assert seen[1].unavailable["memory_used_bytes"] == "Unknown Error"
    assert bench.client.errors_total() == 4


def test_release_closes_the_child_and_resume_takes_a_new_driver(stage: Stage) -> None:
    bench = stage("driver_version=550\n")
    bench.tick()
    child = child_of(bench)
    bench.client.release()
    assert not child.is_running()
    assert "released" in str(bench.tick().missing)
    assert bench.client.pid is None
    bench.scenario.rewrite("driver_version=560\n")
    bench.client.resume()
    assert healthy(bench.tick()) == [0]
    assert bench.client.system["driver_version"] == "560"


def test_close_does_not_wait_for_a_call_that_never_returns(stage: Stage) -> None:
    bench = stage("gpu0.nvmlDeviceGetUtilizationRates=HANG@2\n", deadline=60)
    bench.tick()
    assert bench.tick(0.1).waiting
    child = child_of(bench)
    bench.client.close()
    assert not child.is_running()


PARENT = """
import os, sys, time
from agent.nvml.client import NvmlClient
client = NvmlClient(deadline=60)
client.tick()
client.begin_tick()
print(client.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("fault", ["", "gpu0.nvmlDeviceGetTemperature=HANG@2\n"])
def test_the_child_ends_with_its_parent_even_in_a_call_that_never_returns(
    fakenvml: Path, tmp_path: Path, fault: str
) -> None:
    staged = Scenario(fakenvml, tmp_path, fault)
    root = Path(__file__).parents[2]
    environment = {**os.environ, **staged.environment, "PYTHONPATH": str(root)}
    program = PARENT.replace(
        "client.begin_tick()", "time.sleep(2); client.begin_tick()" * bool(fault)
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    psutil.wait_procs([child], timeout=10)
    assert not child.is_running()


def test_the_child_has_no_descriptor_of_its_parent(stage: Stage, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        bench = stage("")
        bench.tick()
        held = {os.readlink(f) for f in Path(f"/proc/{bench.client.pid}/fd").iterdir()}
    assert str(tmp_path / "secret") not in held


def test_interrupts_of_the_terminal_and_of_systemd_are_the_parents_affair(stage: Stage) -> None:
    bench = stage("")
    bench.tick()
    for number in (signal.SIGINT, signal.SIGTERM):
        child_of(bench).send_signal(number)
    assert healthy(bench.tick()) == [0]
    assert bench.client.restarts_total == 0


def test_what_the_library_prints_is_not_among_the_answers(stage: Stage) -> None:
    # The fake complains on stderr only; descriptor 1 of the child must not be the pipe either.
    bench = stage("")
    bench.tick()
    descriptors = Path(f"/proc/{bench.client.pid}/fd")
    assert os.readlink(descriptors / "1") == os.readlink(descriptors / "2")


def test_pcie_throughput_that_never_returns_costs_only_itself(stage: Stage) -> None:
    bench = stage(
        "gpus=2\ngpu*.gpm=0\ngpu*.pcie_counters=0\ngpu0.nvmlDeviceGetPcieThroughput=HANG@0\n",
        deadline=0.5,
    )
    metric = "pcie_rx_bytes_per_second"
    tick = bench.until(lambda tick: "does not return" in tick.gpus[0].unavailable.get(metric, ""))
    assert tick.gpus[0].values["utilization_ratio"] == 0.5
    assert metric in tick.gpus[1].values
    assert bench.client.restarts_total == 0


def test_a_child_of_another_version_is_no_reason_to_fail(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = stage("")
    monkeypatch.setattr(NvmlProcess, "answer", lambda *_: {"rows": []})
    for _ in range(3):
        tick = bench.tick()
        assert tick.gpus == ()
        assert "restart the agent" in str(tick.missing)


def test_a_process_that_cannot_be_started_is_said_and_tried_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = stage("")

    def refuse(*_: object) -> None:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr("agent.nvml.client.NvmlProcess", refuse)
        assert "Too many open files" in str(bench.tick().missing)
    bench.until(lambda tick: healthy(tick) == [0])


def test_steady_state_costs_at_most_eight_calls_a_tick_and_gpu(stage: Stage) -> None:
    bench = stage("gpus=8\ngpu*.proc=77,C,100,5\n")
    calls = Path(bench.scenario.environment["FAKENVML_STATS"])

    def counted() -> int:
        data = Path(f"{calls}.{bench.client.pid}.bin").read_bytes()
        return int.from_bytes(data[24:32], "little")

    for _ in range(3):
        bench.tick()
    before = counted()
    for _ in range(50):
        bench.tick()
    assert (counted() - before) / 50 / 8 <= 8


def test_nothing_grows_over_many_ticks_and_children(stage: Stage) -> None:
    bench = stage(EIGHT)
    bench.tick()
    process = psutil.Process()
    before = (process.num_fds(), process.num_threads())
    for _ in range(4):
        for _ in range(25):
            bench.tick()
        child_of(bench).kill()
        bench.tick(5)
    assert (process.num_fds(), process.num_threads()) == before
    assert [c for c in process.children() if c.status() == psutil.STATUS_ZOMBIE] == []
