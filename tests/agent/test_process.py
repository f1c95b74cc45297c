"""The daemon as a process: what it loads, how it ends, what happens to its GPUs."""

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from telemetry.store import StoreReader
from tests.agent.command import started, talla_agent
from tests.agent.staged_agent import Server, children, stop, until


@pytest.fixture
def server(fakenvml: Path, tmp_path: Path) -> Iterator[Server]:
    server = Server(fakenvml, tmp_path)
    yield server
    server.kill()


def rows(server: Server, uuid_part: str = "") -> list[tuple[int, str, float]]:
    """The GPUs' rows: start of the window, UUID, seconds covered."""
    with StoreReader(server.store) as store:
        return [
            (window.start, key[1], row.values["covered_seconds"])
            for _, window in store.windows_after(0, 1000)
            for key, row in window.rows.items()
            if key[0] == "gpu" and window.tier == 10 and uuid_part in key[1]
        ]


def test_the_daemon_keeps_the_process_and_loads_no_more_than_it_needs(server: Server) -> None:
    process = server.start()
    until(lambda: server.store.exists() and children(process.pid) != [])
    command = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
    assert command[1:4] == [b"-P", b"-m", b"agent"]
    mapped = Path(f"/proc/{process.pid}/maps").read_text()
    assert "pydantic" not in mapped
    assert "libnvidia-ml" not in mapped  # that is in the child alone
    stop(process)
    assert children(process.pid) == []


def test_a_gpu_that_hangs_does_not_hold_up_the_end(fakenvml: Path, tmp_path: Path) -> None:
    server = Server(fakenvml, tmp_path, scenario="gpus=8\ngpu3.nvmlDeviceGetTemperature=HANG@2\n")
    try:
        process = server.start()
        until(lambda: server.store.exists() and children(process.pid) != [])
        time.sleep(4)  # it hangs now, its deadline of 5 s has not passed
        stop(process)
        assert children(process.pid) == []
    finally:
        server.kill()


def test_the_gpus_device_files_are_let_go_and_taken_back(server: Server) -> None:
    process = server.start()
    until(lambda: server.store.exists() and children(process.pid) != [])
    process.send_signal(signal.SIGUSR1)
    until(lambda: children(process.pid) == [])
    process.send_signal(signal.SIGUSR1)
    until(lambda: children(process.pid) != [])
    stop(process)
    kinds = [event.kind for event in server.events()]
    assert [kind for kind in kinds if kind.startswith("gpu_re")] == ["gpu_released", "gpu_resumed"]


def test_the_check_up_tells_each_collectors_sample_age_while_the_daemon_runs(
    fakenvml: Path, tmp_path: Path
) -> None:
    # All GPUs hang from the start of the second window on; the host goes on.
    server = Server(fakenvml, tmp_path, scenario="gpus=1\nnvmlDeviceGetUtilizationRates=HANG@3\n")
    try:
        process = server.start()
        until(lambda: server.windows() >= 2)
        environment = {**server.staged.environment, "LD_LIBRARY_PATH": ""}
        ran = talla_agent("doctor", "--json", "--config", server.config, environment=environment)
        (daemon,) = (c for c in ran.json()["checks"] if c["check"] == "daemon")
        ages = {
            name: int(seconds)
            for names, seconds in re.findall(r"([a-z_ ]+) (\d+) s ago", daemon["text"])
            for name in names.split()
        }
        assert {"cpu", "memory", "gpu"} <= set(ages)
        assert ages["gpu"] >= ages["cpu"] + 5
        stop(process)
    finally:
        server.kill()


def test_release_closes_the_device_files_before_it_returns(server: Server) -> None:
    process = server.start()
    until(lambda: server.store.exists() and children(process.pid) != [])
    for _ in range(2):  # asking twice is asking once
        ran = talla_agent("release", "--config", server.config)
        assert (ran.code, ran.err) == (0, "")
        assert f"(pid {process.pid}) has let go of the GPUs" in ran.out
        assert children(process.pid) == []
    for _ in range(2):
        ran = talla_agent("release", "--resume", "--store", server.store)
        assert (ran.code, ran.err) == (0, "")
    until(lambda: children(process.pid) != [])
    stop(process)
    kinds = [event.kind for event in server.events()]
    assert [kind for kind in kinds if kind.startswith("gpu_re")] == ["gpu_released", "gpu_resumed"]
    refused = talla_agent("release", "--store", server.store)
    assert refused.code == 1
    assert f"no daemon writes {server.store}" in refused.complaint()


def test_a_driver_that_comes_later_is_found(fakenvml: Path, tmp_path: Path) -> None:
    absent = "nvmlInit_v2=DRIVER_NOT_LOADED\nnvmlInitWithFlags=DRIVER_NOT_LOADED\n"
    server = Server(fakenvml, tmp_path, scenario=absent)
    try:
        process = server.start()
        until(lambda: "driver missing" in server.log.read_text())
        server.staged.rewrite("gpus=2\n")
        until(lambda: "driver found" in server.log.read_text())
        time.sleep(1.5)
        stop(process)
        assert {uuid for _, uuid, covered in rows(server) if covered > 0} != set()
        kinds = [event.kind for event in server.events()]
        assert kinds == ["agent_start", "driver_missing", "driver_found", "agent_stop"]
    finally:
        server.kill()


def test_without_a_driver_the_host_is_sampled_and_it_is_said_once(tmp_path: Path) -> None:
    log, path = tmp_path / "log", tmp_path / "agent.db"
    process = started("run", "--store", path, environment={"LD_LIBRARY_PATH": ""}, log=log)
    until(lambda: path.exists() and path.with_name("agent.db-wal").exists())
    time.sleep(4)
    stop(process)
    with StoreReader(path) as store:
        (host,) = store.hosts()
        measurements = {key[0] for _, window in store.windows_after(0, 100) for key in window.rows}
        kinds = [event.kind for _, event in store.events(host)]
    assert {"host", "agent"} <= measurements
    if "gpu" not in measurements:  # no GPU here
        assert kinds.count("driver_missing") == 1
        assert log.read_text().count("driver missing") == 1


def test_a_simulated_server_is_sampled_and_called_so(tmp_path: Path) -> None:
    log, path = tmp_path / "log", tmp_path / "agent.db"
    process = started("run", "--simulate", "chatbot", "--store", path, log=log)
    until(lambda: path.exists() and "SIMULATED" in log.read_text())
    time.sleep(2.5)
    stop(process)
    with StoreReader(path) as store:
        windows = [window for _, window in store.windows_after(0, 100)]
    assert windows
    assert sum(key[0] == "gpu" for key in windows[0].rows) == 8
