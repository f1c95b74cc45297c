"""`talla-agent run` as a process: fake NVML library, real store, real InfluxDB."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from telemetry.event import Event
from telemetry.store import StoreReader
from tests.agent.command import started, talla_agent
from tests.fakenvml.staged import Scenario
from tests.servers.influxdb import InfluxDB, V2Front
from tests.shipping.points import arrived, stored

SCENARIO = """
gpus=8
gpu*.name=NVIDIA H100 80GB HBM3
gpu*.util=square:7,0,95,0.6
gpu*.mem_used_mib=ramp:600,20000,70000
gpu*.power_w=sine:40,120,650
gpu*.pcie_rx_kbs=sine:15,100000,4000000
gpu0.proc={pid},C,18000,55
gpu2.nvmlDeviceGetUtilizationRates=NOT_SUPPORTED
gpu5.lost_after=6
"""


class Server:
    """A GPU server: the fake library, a configuration, a store, and the agent on it."""

    def __init__(self, fakenvml: Path, folder: Path, influx: str) -> None:
        self.folder = folder
        self.store = folder / "agent.db"
        self.log = folder / "agent.log"
        self.staged = Scenario(fakenvml, folder, SCENARIO.format(pid=os.getpid()))
        self.config = folder / "agent.toml"
        self.config.write_text(f"[agent]\nhost = 'gpu01'\n[store]\npath = '{self.store}'\n{influx}")
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        process = started(
            "run", "--config", self.config, environment=self.staged.environment, log=self.log
        )
        self.running.append(process)
        return process

    def windows(self) -> int:
        """How many are committed; 0 before there is a store."""
        if not self.store.exists():
            return 0
        with contextlib.suppress(Exception), StoreReader(self.store) as store:
            return store.last_window_id()
        return 0

    def events(self) -> list[Event]:
        with StoreReader(self.store) as store:
            return [event for _, event in store.events()]

    def cursor(self) -> int:
        with StoreReader(self.store) as store:
            return store.cursor("ship")


@pytest.fixture
def server(fakenvml: Path, tmp_path: Path, influxdb_v2: V2Front, database: str) -> Iterator[Server]:
    token = tmp_path / "token"
    token.write_text(influxdb_v2.token)
    server = Server(
        fakenvml,
        tmp_path,
        f"[influx]\nurl = '{influxdb_v2.url}'\nbucket = '{database}'\ntoken_file = '{token}'\n"
        "retry_seconds = 0.2\n",
    )
    yield server
    for process in server.running:
        if process.poll() is None:
            process.kill()
            process.wait()


def until(condition: Callable[[], bool], seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.1)


def stop(process: subprocess.Popen[bytes], within: float = 3.0) -> None:
    """SIGTERM, and the end in time."""
    process.send_signal(signal.SIGTERM)
    assert process.wait(within) == 0


def sample_and_compare(server: Server, influxdb: InfluxDB, database: str, seconds: float) -> None:
    process = server.start()
    until(lambda: server.windows() > 0)
    time.sleep(seconds)
    second = talla_agent("run", "--config", server.config)
    assert second.code == 1
    assert "another process writes this store" in second.complaint()
    stop(process)
    log = server.log.read_text()
    assert "Traceback" not in log

    kept = stored(server.store)
    there = arrived(influxdb, database)
    assert there == kept
    assert {key[2] for key in kept} == {"10s", "5m"}
    gpus = {key[3][0] for key in kept if key[0] == "gpu"}  # type: ignore[index]
    assert len(gpus) == 8
    assert {"agent", "gpu", "gpu_process", "host"} <= {key[0] for key in kept}
    # What a card lacks is nowhere.
    without = [key for key in kept if key[0] == "gpu" and "utilization_ratio" not in kept[key]]
    assert without
    kinds = [event.kind for event in server.events()]
    assert kinds[0] == "agent_start"
    assert kinds[-1] == "agent_stop"
    assert "gpu_lost" in kinds
    (events,) = influxdb.query('SELECT count("sequence") FROM "event"', database)
    assert events.rows[0][1] == len(kinds)
    assert influxdb.query('SELECT "document" FROM "inventory"', database)


def test_the_store_and_influxdb_hold_the_same(
    server: Server, influxdb: InfluxDB, database: str
) -> None:
    sample_and_compare(server, influxdb, database, 4.0)


@pytest.mark.long
def test_the_store_and_influxdb_hold_the_same_after_a_minute(
    server: Server, influxdb: InfluxDB, database: str
) -> None:
    sample_and_compare(server, influxdb, database, 60.0)


def test_what_a_killed_agent_kept_is_shipped_once_by_the_next(
    server: Server, influxdb: InfluxDB, database: str, influxdb_v2: V2Front
) -> None:
    # The first agent finds no server; what it kept must outlive it.
    good = server.config.read_text()
    server.config.write_text(good.replace(influxdb_v2.url, "http://127.0.0.1:9"))
    first = server.start()
    until(lambda: server.windows() >= 1)
    first.kill()
    first.wait()
    until(lambda: not _children(first.pid))
    assert influxdb.count("gpu", "covered_seconds", database) == 0

    server.config.write_text(good)
    second = server.start()
    until(lambda: server.cursor() >= 2)
    stop(second)
    assert arrived(influxdb, database) == stored(server.store)
    starts = [event for event in server.events() if event.kind == "agent_start"]
    assert len(starts) == 2


def _children(parent: int) -> list[int]:
    """Processes of the parent that live, by /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == parent:
                    found.append(int(entry.name))
    return found


def test_the_daemon_keeps_the_process_and_loads_no_more_than_it_needs(
    fakenvml: Path, tmp_path: Path
) -> None:
    server = Server(fakenvml, tmp_path, "")
    process = server.start()
    try:
        until(lambda: server.store.exists() and _children(process.pid) != [])
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
        assert command[1:4] == [b"-P", b"-m", b"agent"]
        mapped = Path(f"/proc/{process.pid}/maps").read_text()
        assert "pydantic" not in mapped
        assert "libnvidia-ml" not in mapped  # that is in the child alone
        stop(process)
        assert _children(process.pid) == []
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


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
