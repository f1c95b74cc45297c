"""Ends what staged runs left that were killed: their processes, mounts and loop devices.

The folder and the control groups of a run carry its process's number.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

NAME = "staged-{}"
_NAME = re.compile(r"/staged-(?:training-)?(\d+)(?=/|$)")


def of_the_dead(path: str) -> bool:
    """Whether a path belongs to a run whose process is no more."""
    found = _NAME.search(path)
    return found is not None and not Path("/proc", found[1]).exists()


def clear_away(cgroups: Path) -> None:
    """Ends all of it. `cgroups` is where the control groups are mounted."""
    for group in _groups(cgroups):
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    for line in Path("/proc/self/mounts").read_text().splitlines():
        mount = line.split()[1]
        if of_the_dead(mount):
            subprocess.run(["umount", "--lazy", mount], check=False)
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if of_the_dead(file.read_text().strip()):
                device = Path("/dev", file.parts[3])
                subprocess.run(["losetup", "--detach", device], check=False)
    for group in _groups(cgroups):
        with contextlib.suppress(OSError):  # its last process is just ending: the next run's turn
            group.rmdir()


def _groups(cgroups: Path) -> Iterator[Path]:
    for pattern in ("staged-training-*", "*/staged-training-*"):
        yield from filter(lambda path: of_the_dead(str(path)), cgroups.glob(pattern))
