"""A staged run that was killed leaves nothing that the next one does not clear away."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.require import need
from tests.staging.stage import staged

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
KILLED = """
import os, sys
from pathlib import Path
from tests.staging.stage import MIB, staged
with staged(Path(sys.argv[1])) as stage:
    _, device = stage.loop_device(16 * MIB)
    print(device, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_what_a_killed_run_left_is_cleared_away(tmp_path: Path) -> None:
    need(os.geteuid() == 0, "root", "run it as root: it mounts file systems")
    need(Path("/dev/loop-control").exists(), "loop", "modprobe loop")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    backing = Path(f"/sys/block/{done.stdout.strip()}/loop/backing_file")
    assert backing.read_text().startswith(str(tmp_path))
    assert str(tmp_path) in Path("/proc/self/mounts").read_text()

    (tmp_path / "next").mkdir()
    with staged(tmp_path / "next"):
        assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
        assert not backing.exists() or str(tmp_path) not in backing.read_text()
