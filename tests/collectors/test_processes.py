"""Processes of a GPU: real ones where the kernel gives the state, a fixture tree for the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.collectors.collector import Sources
from agent.collectors.gpu_process import SLOTS, GpuProcessCollector
from agent.host.hostfs import HostFs
from agent.host.processes import parse_stat
from agent.nvml.types import GpuProcess
from telemetry.metrics import GPU, GPU_PROCESS
from telemetry.window import Sample
from tests.collectors.tree import plant

UUID = "GPU-00000000-0000-0000-0000-000000000001"
OTHER = "GPU-00000000-0000-0000-0000-000000000002"
MACHINE = "--- /proc/self/ns/pid -> pid:[4026531836]\n--- /proc/1/stat\n1 (systemd) S 0\n"


class Driver:
    """Lists the processes that a test wants listed."""

    def __init__(self, *processes: GpuProcess) -> None:
        self.listed = processes
        self.refused: dict[str, dict[str, str]] = {}

    def processes(self) -> tuple[GpuProcess, ...]:
        return self.listed

    def unavailable_processes(self) -> dict[str, dict[str, str]]:
        return self.refused


def on_gpu(
    pid: int, memory: int | None = 1000, sm: float | None = None, uuid: str = UUID
) -> GpuProcess:
    return GpuProcess(uuid, pid, memory, sm, "compute")


def collector(hostfs: HostFs, driver: Driver) -> GpuProcessCollector:
    return GpuProcessCollector(Sources(hostfs=hostfs, nvml=driver))  # type: ignore[arg-type]


def read(reader: GpuProcessCollector, now: float, *uuids: str) -> Sample:
    gpus = uuids or (UUID,)
    sample = Sample(now, {("gpu", uuid): {"utilization_ratio": 0.5} for uuid in gpus})
    reader.collect(now, sample)
    for key, row in sample.rows.items():
        family = GPU if key[0] == "gpu" else GPU_PROCESS
        assert set(row) <= {metric.name for metric in family.metrics}
    for texts in sample.texts.values():
        assert set(texts) <= set(GPU_PROCESS.texts)
    return sample


def stat(pid: int, name: str = "python3", state: str = "S", parent: int = 1, threads: int = 1,
         cpu: tuple[int, int] = (0, 0), started: int = 5000, pages: int = 256) -> str:  # fmt: skip
    """A line of /proc/PID/stat in the kernel's order."""
    return (
        f"{pid} ({name}) {state} {parent} {pid} {pid} 0 -1 4194304 96 0 0 0 {cpu[0]} {cpu[1]} 0 0"
        f" 20 0 {threads} 0 {started} 3133440 {pages} 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0"
        " 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )


def process(
    pid: int,
    command: str = "python3 x.py",
    io: tuple[int, int] | None = (0, 0),
    children: str = "",
    uid: int = 1000,
    cgroup: str = "0::/",
    **more: object,
) -> str:
    """The files of a process, as `plant` wants them."""
    files = f"--- /proc/{pid}/stat\n{stat(pid, **more)}"  # type: ignore[arg-type]
    files += f"--- /proc/{pid}/status\nName:\tx\nUmask:\t0022\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
    arguments = command.replace(" ", "\0")
    files += f"--- /proc/{pid}/cmdline\n{arguments}\0\n"
    files += f"--- /proc/{pid}/cgroup\n{cgroup}\n"
    files += f"--- /proc/{pid}/task/{pid}/children\n{children}\n"
    if io is not None:
        files += (
            f"--- /proc/{pid}/io\nrchar: 9\nwchar: 9\nsyscr: 9\nsyscw: 9\n"
            f"read_bytes: {io[0]}\nwrite_bytes: {io[1]}\ncancelled_write_bytes: 0\n"
        )
    return files


def test_a_name_may_hold_anything() -> None:
    raw = stat(7).encode().replace(b"python3", b"a) R 1 (\xff\n)")
    assert parse_stat(raw).name == "a) R 1 (\\xff\n)"
    assert parse_stat(raw).state == "S"


def test_the_job_is_the_process_and_its_workers(tmp_path: Path) -> None:
    hz = os.sysconf("SC_CLK_TCK")
    before = (
        MACHINE
        + process(100, io=(1000, 0), children="101 102 200 ", cpu=(0, 0))
        + process(101, io=(0, 0), parent=100)
        + process(102, io=(0, 0), parent=100)
        + process(200, io=(0, 0), parent=100)
    )
    hostfs = plant(tmp_path, before)
    # 200 is a child as well, but works on a GPU itself: it is not 100's worker.
    driver = Driver(on_gpu(100, 5000, 0.25), on_gpu(200, 7000, uuid=OTHER))
    reader = collector(hostfs, driver)
    first = read(reader, 10.0, UUID, OTHER)
    assert first.rows["gpu", UUID]["process_count"] == 1
    assert "job_read_bytes_per_second" not in first.rows["gpu", UUID]
    plant(
        tmp_path,
        process(100, io=(3000, 500), children="101 102 200 ", cpu=(hz, hz))
        + process(101, io=(8000, 0), parent=100, state="D", cpu=(2 * hz, 0))
        + process(102, io=(8000, 0), parent=100, state="R")
        + process(200, io=(40, 0), parent=100),
    )
    second = read(reader, 12.0, UUID, OTHER)
    gpu = second.rows["gpu", UUID]
    assert gpu["job_read_bytes_per_second"] == (2000 + 8000 + 8000) / 2
    assert gpu["job_write_bytes_per_second"] == 250
    assert gpu["job_blocked_ratio"] == pytest.approx(1 / 3)
    assert gpu["job_computing_ratio"] == 0.5  # of its two workers
    assert gpu["process_memory_bytes"] == 5000
    row = second.rows["gpu_process", UUID, "0"]
    assert row["cpu_cores"] == pytest.approx(2.0)
    assert row["sm_ratio"] == 0.25
    assert second.rows["gpu", OTHER]["job_read_bytes_per_second"] == 20
    # Between readings: the levels go on, what belongs to an instant does not.
    third = read(reader, 13.0, UUID, OTHER)
    assert set(third.rows["gpu", UUID]) == {
        "utilization_ratio",
        "process_count",
        "process_memory_bytes",
    }
    assert set(third.rows["gpu_process", UUID, "0"]) == {"memory_bytes", "host_memory_bytes"}
    assert "job_blocked_ratio" in read(reader, 17.0, UUID, OTHER).rows["gpu", UUID]


def test_threads_are_the_workers_of_a_process_without_children(tmp_path: Path) -> None:
    files = MACHINE + process(100, threads=4)
    for thread, state in ((100, "S"), (103, "D"), (104, "D"), (105, "R")):
        files += f"--- /proc/100/task/{thread}/stat\n{stat(thread, state=state)}"
    reader = collector(plant(tmp_path, files), Driver(on_gpu(100)))
    assert read(reader, 1.0).rows["gpu", UUID]["job_blocked_ratio"] == pytest.approx(2 / 3)


def test_zombie_gone_and_running_are_told_apart(tmp_path: Path) -> None:
    files = (
        MACHINE
        + process(100)
        + process(101, state="Z", command="", io=None)
        + process(102, state="Z", threads=3)  # its first thread ended, others work on
    )
    driver = Driver(on_gpu(100, 10), on_gpu(101, 20), on_gpu(102, 30), on_gpu(103, 40))
    sample = read(collector(plant(tmp_path, files), driver), 1.0)
    states = {t["pid"]: t["state"] for t in sample.texts.values()}
    assert states == {"100": "running", "101": "zombie", "102": "running", "103": "gone"}
    assert sample.rows["gpu", UUID]["process_count"] == 2
    assert sample.rows["gpu", UUID]["process_memory_bytes"] == 40


@pytest.mark.parametrize("hide", ["namespace", "hidepid"])
def test_what_is_hidden_is_not_counted_as_gone(tmp_path: Path, hide: str) -> None:
    files = MACHINE
    if hide == "namespace":
        files = files.replace("4026531836", "4026532201") + process(100)
    else:
        files = files.partition("--- /proc/1/")[0]
    reader = collector(plant(tmp_path, files), Driver(on_gpu(100, 10)))
    sample = read(reader, 1.0)
    assert sample.texts["gpu_process", UUID, "0"] == {"pid": "100", "state": "hidden"}
    assert "process_count" not in sample.rows["gpu", UUID]
    assert sample.rows["gpu", UUID]["process_memory_bytes"] == 10
    assert "pid=host" in str(reader.unavailable()) or "hidepid" in str(reader.unavailable())


def test_an_empty_list_within_a_container_says_nothing(tmp_path: Path) -> None:
    reader = collector(plant(tmp_path, MACHINE.replace("4026531836", "4026532201")), Driver())
    assert read(reader, 1.0).rows["gpu", UUID] == {"utilization_ratio": 0.5}


def test_an_empty_list_on_the_machine_says_that_there_is_none(tmp_path: Path) -> None:
    row = read(collector(plant(tmp_path, MACHINE), Driver()), 1.0).rows["gpu", UUID]
    assert row["process_count"] == 0
    assert row["process_memory_bytes"] == 0
    assert "job_blocked_ratio" not in row


def test_a_refused_list_is_no_empty_list(tmp_path: Path) -> None:
    driver = Driver()
    driver.refused = {UUID: {"compute": "no permission"}}
    reader = collector(plant(tmp_path, MACHINE), driver)
    assert read(reader, 1.0).rows["gpu", UUID] == {"utilization_ratio": 0.5}
    assert reader.unavailable() == {f"gpu {UUID} process_count": "no permission"}


def test_memory_that_the_driver_does_not_tell_is_no_memory(tmp_path: Path) -> None:
    files = MACHINE + process(100) + process(101)
    reader = collector(plant(tmp_path, files), Driver(on_gpu(100, None), on_gpu(101, 10)))
    sample = read(reader, 1.0)
    assert "process_memory_bytes" not in sample.rows["gpu", UUID]
    rows = [row for key, row in sample.rows.items() if key[0] == "gpu_process"]
    assert sum("memory_bytes" in row for row in rows) == 1


def test_io_that_may_not_be_read_is_absent_with_one_reason(tmp_path: Path) -> None:
    hostfs = plant(tmp_path, MACHINE + process(100) + process(101, io=None))
    driver = Driver(on_gpu(100), on_gpu(101))
    reader = collector(hostfs, driver)
    read(reader, 1.0)
    sample = read(reader, 2.0)
    assert "job_read_bytes_per_second" not in sample.rows["gpu", UUID]
    rows = [row for key, row in sample.rows.items() if key[0] == "gpu_process"]
    assert sum("read_bytes_per_second" in row for row in rows) == 1
    assert "CAP_SYS_PTRACE" in reader.unavailable()["gpu_process read_bytes_per_second"]


def test_a_process_keeps_its_slot_and_a_pid_given_anew_starts_anew(tmp_path: Path) -> None:
    plant(tmp_path, MACHINE + "".join(process(pid) for pid in range(100, 130)))
    driver = Driver(*(on_gpu(pid, pid) for pid in range(100, 120)))
    reader = collector(HostFs(tmp_path), driver)
    first = read(reader, 1.0)
    slots = {t["pid"]: key[2] for key, t in first.texts.items() if key[0] == "gpu_process"}
    assert len(slots) == SLOTS
    assert first.rows["gpu", UUID]["process_count"] == 20
    assert set(slots) == {str(pid) for pid in range(104, 120)}  # those that hold most
    driver.listed = tuple(on_gpu(pid, pid) for pid in range(110, 130))
    plant(tmp_path, process(110, io=(10**9, 0), started=9999))
    second = read(reader, 2.0)
    again = {t["pid"]: key[2] for key, t in second.texts.items() if key[0] == "gpu_process"}
    assert all(again[pid] == slot for pid, slot in slots.items() if int(pid) >= 110)
    assert len(set(again.values())) == len(again) == SLOTS
    assert "read_bytes_per_second" not in second.rows["gpu_process", UUID, again["110"]]


def test_many_processes_in_a_day_leave_nothing_behind(tmp_path: Path) -> None:
    plant(tmp_path, MACHINE)
    driver = Driver()
    reader = collector(HostFs(tmp_path), driver)
    open_before = len(os.listdir("/proc/self/fd"))
    for turn in range(200):
        pid = 1000 + turn
        plant(tmp_path, process(pid))
        driver.listed = (on_gpu(pid),)
        sample = read(reader, 10.0 * turn)
        assert sample.texts["gpu_process", UUID, "0"]["pid"] == str(pid)
    assert len(reader._trees) == 1
    assert len(reader._identities._known) == 1
    assert len(os.listdir("/proc/self/fd")) <= open_before + 2  # stat and io of the last one


def test_texts_say_what_it_is_without_secrets(tmp_path: Path) -> None:
    files = (
        MACHINE
        + "--- /etc/passwd\nroot:x:0:0::/root:/bin/sh\nsvc-llm:x:1000:1000::/:/bin/false\n"
        + process(
            90,
            "python3 -m vllm.entrypoints.openai.api_server --model meta-llama/Llama-3.1-8B-Instruct"
            " --api-key sk-verysecret",
        )
        + process(100, "VLLM::EngineCore", parent=90, cgroup="0::/system.slice/vllm.service")
        + process(101, "python3 train.py --api-key sk-verysecret", uid=4242)
    )
    driver = Driver(on_gpu(100, 20), on_gpu(101, 10))
    reader = collector(plant(tmp_path, files), driver)
    texts = read(reader, 1.0).texts
    engine, script = texts["gpu_process", UUID, "0"], texts["gpu_process", UUID, "1"]
    assert engine["workload"] == "llm_inference"
    assert engine["model"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert engine["model_source"] == "command"
    assert (engine["user"], engine["owner"], engine["owner_kind"]) == (
        "svc-llm",
        "vllm.service",
        "systemd_unit",
    )
    assert (script["user"], script["owner"], script["owner_kind"]) == ("4242", "4242", "user")
    assert "verysecret" not in str(texts)


def test_a_title_set_later_is_seen(tmp_path: Path) -> None:
    plant(tmp_path, MACHINE + process(100, "python3 launcher.py"))
    reader = collector(HostFs(tmp_path), Driver(on_gpu(100)))
    assert "workload" not in read(reader, 1.0).texts["gpu_process", UUID, "0"]
    plant(tmp_path, process(100, "VLLM::EngineCore", name="VLLM::EngineCor"))
    assert read(reader, 7.0).texts["gpu_process", UUID, "0"]["workload"] == "llm_inference"


@pytest.fixture
def started() -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts Python programs, and ends what is left of them."""
    children: list[subprocess.Popen[str]] = []

    def start(program: str) -> subprocess.Popen[str]:
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        children.append(child)
        assert child.stdout is not None
        child.stdout.readline()
        return child

    yield start
    for child in children:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def real_proc(tmp_path: Path, *pids: int) -> HostFs:
    """The kernel's own files of some processes, as seen from the machine itself."""
    hostfs = plant(tmp_path, MACHINE)
    for pid in pids:
        (tmp_path / f"proc/{pid}").symlink_to(f"/proc/{pid}")
    return hostfs


def test_a_real_process_with_a_worker_that_works(
    tmp_path: Path, started: Callable[[str], subprocess.Popen[str]]
) -> None:
    child = started(
        "import os\n"
        "worker = os.fork()\n"
        "if worker == 0:\n"
        "    while os.getppid() != 1: pass\n"
        "    os._exit(0)\n"
        "print(worker, flush=True)\n"
        "os.waitpid(worker, 0)\n"
    )
    children = Path(f"/proc/{child.pid}/task/{child.pid}/children")
    if not children.exists():
        pytest.skip("this kernel has no CONFIG_PROC_CHILDREN")
    worker = int(children.read_text().split()[0])
    try:
        hostfs = real_proc(tmp_path, child.pid, worker)
        reader = collector(hostfs, Driver(on_gpu(child.pid)))
        sample = read(reader, time.monotonic())
        cores = 0.0
        until = time.monotonic() + 20
        while not cores and time.monotonic() < until:
            time.sleep(0.2)
            reader._due = 0.0
            sample = read(reader, time.monotonic())
            cores = sample.rows["gpu_process", UUID, "0"]["cpu_cores"]
        assert 0.0 < cores < 4.0
        row = sample.rows["gpu_process", UUID, "0"]
        assert row["host_memory_bytes"] > 1_000_000
        assert sample.texts["gpu_process", UUID, "0"]["state"] == "running"
        assert "os.fork()" in sample.texts["gpu_process", UUID, "0"]["command"]
    finally:
        os.kill(worker, signal.SIGKILL)


def test_a_real_zombie(tmp_path: Path, started: Callable[[str], subprocess.Popen[str]]) -> None:
    parent = started(
        "import os, time\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(0)\n"
        "os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)\n"
        "print(child, flush=True)\n"
        "time.sleep(60)\n"
    )
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    if not children.exists():
        pytest.skip("this kernel has no CONFIG_PROC_CHILDREN")
    zombie = int(children.read_text().split()[0])
    reader = collector(real_proc(tmp_path, zombie), Driver(on_gpu(zombie, 10)))
    sample = read(reader, 1.0)
    assert sample.texts["gpu_process", UUID, "0"]["state"] == "zombie"
    assert sample.rows["gpu", UUID]["process_count"] == 0
    assert sample.rows["gpu", UUID]["process_memory_bytes"] == 0


def test_fifty_thousand_pids_in_a_day_leave_no_more_rows_and_nothing_behind(
    tmp_path: Path,
) -> None:
    # A job that starts a process for each batch: 20 new pids at each of 2,500 readings.
    hostfs = plant(tmp_path, MACHINE)
    driver = Driver()
    reader = collector(hostfs, driver)
    keys = set()
    before = len(os.listdir("/proc/self/fd"))
    for reading in range(2_500):
        driver.listed = tuple(on_gpu(10_000 + reading * 20 + n) for n in range(20))
        sample = read(reader, reading * 5.0)
        keys |= {key for key in sample.rows if key[0] == "gpu_process"}
    assert keys == {("gpu_process", UUID, str(slot)) for slot in range(SLOTS)}
    assert len(reader._trees) <= SLOTS
    assert len(reader._identities._known) <= 20
    assert len(os.listdir("/proc/self/fd")) <= before + 3
