"""The test's machine itself: nothing of it stays, however its test run ended."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.require import need
from tests.systemd.machine import ROOT, Machine, obstacle

pytestmark = pytest.mark.systemd
BOOT = """
import sys, time
from pathlib import Path
from tests.systemd.machine import Machine
Machine(Path(sys.argv[1]), Path(sys.argv[1]))
print(flush=True)
time.sleep(600)
"""


def groups(folder: Path) -> list[Path]:
    """The control groups of a machine that are there."""
    named = (folder / "cg").read_text().splitlines()
    return [path for path in map(Path, named) if path.exists()]


def mounted(folder: Path) -> list[str]:
    """The processes that see a mount below a folder."""
    seen = []
    for mounts in Path("/proc").glob("[0-9]*/mounts"):
        try:
            if f" {folder}/" in mounts.read_text():
                seen.append(mounts.parent.name)
        except OSError:
            continue  # it ended meanwhile
    return seen


def test_a_killed_runs_machine_is_cleared_away_by_the_next_run(tmp_path: Path) -> None:
    why = obstacle()
    need(why is None, "systemd", why or "")
    left, fresh = tmp_path / "left", tmp_path / "fresh"
    left.mkdir()
    fresh.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", BOOT, left], cwd=ROOT, stdout=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"\n"
        # All of it at once: neither the run nor the machine's keeper can clear anything away.
        os.kill(int((left / "keeper").read_text()), signal.SIGKILL)
        run.kill()
    assert groups(left)
    assert mounted(left)

    booted = Machine(fresh, fresh)
    try:
        assert groups(left) == []
        booted.until("its mounts gone", lambda: not mounted(left))
        assert booted.out("systemctl is-system-running") == "running"
    finally:
        booted.down()
    assert groups(fresh) == []
    time.sleep(2.5)  # the keeper's own sleep
    assert mounted(fresh) == []
