"""A server that does not come up says why, and one that should be gone is gone."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.servers.influxdb import InfluxDB
from tests.servers.process import ServerFailed, ServerProcess, answers, on_free_ports

LAUNCH_AND_WAIT = """
import sys
from pathlib import Path
from tests.servers.influxdb import InfluxDB

print(InfluxDB.launch(Path(sys.argv[1])).url, flush=True)
sys.stdin.read()
"""


def test_a_server_that_exits_shows_its_log(tmp_path: Path) -> None:
    server = ServerProcess(
        ["sh", "-c", "echo the port is taken; exit 3"], tmp_path, ready=lambda: False
    )
    with pytest.raises(ServerFailed, match="sh exited 3; its log ends:\nthe port is taken"):
        server.start()


def test_a_server_that_ignores_the_request_to_stop_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.servers.process.STOP_SECONDS", 0.2)
    script = "import os, signal, time; signal.signal(15, signal.SIG_IGN); "
    script += "open('up', 'w').write(str(os.getpid())); time.sleep(600)"
    up = tmp_path / "up"
    server = ServerProcess(
        [sys.executable, "-c", script],
        tmp_path,
        ready=lambda: up.exists() and up.read_text() != "",
    )
    server.start()
    pid = int(up.read_text())

    server.stop()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_another_port_is_tried_a_few_times() -> None:
    tries = iter(range(1, 100))

    def launch() -> int:
        attempt = next(tries)
        if attempt < 3:
            raise ServerFailed("the port is taken")
        return attempt

    assert on_free_ports(launch) == 3
    with pytest.raises(ServerFailed, match="taken"):
        on_free_ports(lambda: _refuse("taken"), attempts=2)


def _refuse(why: str) -> None:
    raise ServerFailed(why)


def test_the_server_dies_with_a_test_process_that_is_killed(
    influxdb: InfluxDB, tmp_path: Path
) -> None:
    assert answers(f"{influxdb.url}/ping")  # asked first: without InfluxDB there is nothing to show
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCH_AND_WAIT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as launcher:
        assert launcher.stdout is not None
        url = launcher.stdout.readline().strip()
        assert answers(f"{url}/ping")
        launcher.send_signal(signal.SIGKILL)

    deadline = time.monotonic() + 10
    while answers(f"{url}/ping") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not answers(f"{url}/ping")
