"""The daemon on the fake library under a clock that needs no waiting: what grows over many ticks.

`python -m tests.agent.soak TICKS FOLDER` prints, as JSON, what the daemon and its NVML process hold
after a tenth of the ticks and at the end; the log goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path

from agent.alerts.alarm import Alarm
from agent.alerts.rulebook import Rulebook
from agent.config.settings import Settings
from agent.daemon import Daemon
from agent.keeper import Keeper
from agent.machine import MachineSource
from agent.notify import Notifier
from agent.nvml.client import NvmlClient
from telemetry import logs
from telemetry.clock import ManualClock
from telemetry.store import Store
from tests.agent.staged_agent import children

START = 1_700_000_100.0


def held(pid: int) -> dict[str, int]:
    """What a process holds: memory that is its own, descriptors, threads."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    own = sum(int(line.split()[1]) for line in rollup if line.startswith("Private_"))
    return {
        "own_kib": own,
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": len(os.listdir(f"/proc/{pid}/task")),
    }


def main(ticks: int, folder: Path) -> None:
    """Runs the daemon for so many seconds of its clock."""
    logs.start("info")
    clock = ManualClock(START - 0.5)
    client = partial(NvmlClient, clock=clock.monotonic)
    source = MachineSource(Settings(), "n1", patience=None, nvml=client)
    keeper = Keeper(Store(folder / "agent.db"), "n1", memory_windows=500)
    alarm = Alarm(Rulebook.load(str(folder / "no-rules")), "n1")
    daemon = Daemon(
        Settings(), "n1", source, keeper, clock, version="1", notifier=Notifier({}), alarm=alarm
    )
    seen: list[list[dict[str, int]]] = []
    marks = [START + ticks // 10, START + ticks]

    def stop() -> bool:
        if clock.wall() >= marks[len(seen)]:
            pids = [os.getpid(), *children(os.getpid())]
            seen.append([held(pid) for pid in pids])
        return len(seen) == len(marks)

    daemon.run(stop)
    print(json.dumps({"early": seen[0], "late": seen[1], "missed": daemon.missed_ticks_total}))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
