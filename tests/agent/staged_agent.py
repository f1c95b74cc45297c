"""A GPU server for tests: the fake NVML library, a configuration, a store, and the agent on it."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from telemetry.event import Event
from telemetry.store import StoreReader
from tests.agent.command import started
from tests.fakenvml.staged import Scenario

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

    def __init__(
        self,
        fakenvml: Path,
        folder: Path,
        more: str = "",
        scenario: str = SCENARIO,
        *,
        stepped: bool = False,
    ) -> None:
        """`more` is added to the configuration; `stepped` as of the scenario."""
        self.folder = folder
        self.store = folder / "agent.db"
        self.log = folder / "agent.log"
        self.staged = Scenario(fakenvml, folder, scenario.format(pid=os.getpid()), stepped=stepped)
        self.config = folder / "agent.toml"
        self.config.write_text(f"[agent]\nhost = 'gpu01'\n[store]\npath = '{self.store}'\n{more}")
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        process = started(
            "run", "--config", self.config, environment=self.staged.environment, log=self.log
        )
        self.running.append(process)
        return process

    def kill(self) -> None:
        """Ends what a test left running."""
        for process in self.running:
            if process.poll() is None:
                process.kill()
                process.wait()

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


def until(condition: Callable[[], bool], seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.1)


def stop(process: subprocess.Popen[bytes], within: float = 3.0) -> None:
    """SIGTERM, and the end in time."""
    process.send_signal(signal.SIGTERM)
    assert process.wait(within) == 0


def children(parent: int) -> list[int]:
    """Processes of the parent that live, by /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == parent:
                    found.append(int(entry.name))
    return found
