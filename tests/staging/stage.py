"""One staged run: a medium, a training that reads from it, the agent beside it, what it wrote."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.agent.staged_agent import Server, stop, until
from tests.require import need, need_program
from tests.staging.leftovers import NAME, clear_away

HERE = Path(__file__).parent
MIB = 1 << 20
_CGROUPS = Path("/sys/fs/cgroup")
_VERSION_2 = (_CGROUPS / "cgroup.controllers").exists()
_DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
SCENARIO = """
gpus=1
gpu0.name=NVIDIA A100-SXM4-40GB
gpu0.mem_total_mib=40960
gpu0.mem_used_mib=20000
gpu0.power_limit_w=400
gpu0.gpm=0
gpu0.pcie_rx_kbs=40000
gpu0.pcie_tx_kbs=20000
gpu0.util=live:{live},0
gpu0.power_w=live:{live},1
gpu0.proc={pid},C,19000,50
"""


@dataclass
class Stage:
    """Where a run takes place, and what it leaves to be undone."""

    folder: Path
    undo: contextlib.ExitStack
    cgroups: list[Path] = field(default_factory=list)

    def throttled(self, *, read: int = 0, write: int = 0) -> None:
        """Lets the training move so many bytes a second from or to the disk that lies below
        everything here, where that is not 0."""
        device = Path(f"/sys/class/block/{disk_below(self.folder)}/dev").read_text().strip()
        for direction, rate in (("read", read), ("write", write)):
            if not rate:
                continue
            if _VERSION_2:
                self._cgroup("io", "io.max", f"{device} {direction[0]}bps={rate}")
            else:
                file = f"blkio.throttle.{direction}_bps_device"
                self._cgroup("blkio", file, f"{device} {rate}")

    def limited(self, memory_bytes: int) -> None:
        """Gives the training so much memory, page cache included."""
        name = "memory.max" if _VERSION_2 else "memory.limit_in_bytes"
        self._cgroup("memory", name, str(memory_bytes))

    def _cgroup(self, controller: str, file: str, limit: str) -> None:
        parent = _CGROUPS if _VERSION_2 else _CGROUPS / controller
        need((parent / "cgroup.procs").exists(), "cgroup", f"the {controller} controller")
        if _VERSION_2:
            (parent / "cgroup.subtree_control").write_text(f"+{controller}")
        group = parent / f"staged-training-{os.getpid()}"
        if group not in self.cgroups:
            group.mkdir()
            self.undo.callback(_remove_cgroup, group)
            self.cgroups.append(group)
        (group / file).write_text(limit)

    def files(self, place: Path, count: int, size: int) -> Path:
        """A data set of files that no one has compressed away."""
        place.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            with (place / f"{number}.bin").open("wb") as file:
                for _ in range(size // MIB):
                    file.write(os.urandom(MIB))
                file.flush()
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return place

    def loop_device(self, size: int) -> tuple[Path, str]:
        """A file system of its own in an image file: where it is mounted, and its device."""
        image, mount = self.folder / "image", self.folder / "data"
        losetup, mkfs = need_program("losetup", "mount"), need_program("mkfs.ext4", "e2fsprogs")
        with image.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
        device = _run(losetup, "--direct-io=on", "--find", "--show", image).strip()
        self.undo.callback(_run, losetup, "--detach", device)
        _run(mkfs, "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
        mount.mkdir()
        _run("mount", device, mount)
        self.undo.callback(_run, "umount", "--lazy", mount)
        return mount, device.removeprefix("/dev/")

    def slow_fuse(self, data: Path, seconds: float) -> Path:
        """The data behind a FUSE file system in which each read takes so long."""
        need(importlib.util.find_spec("mfusepy"), "mfusepy", "pip install mfusepy")
        need_program("fusermount3", "fuse3")
        mount = self.folder / "bucket"
        mount.mkdir()
        process = subprocess.Popen(
            [*_DIES_WITH_US, sys.executable, HERE / "slow_fuse.py", data, mount, str(seconds)],
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.undo.callback(_end, process)
        self.undo.callback(_run, "umount", "--lazy", mount)
        until(mount.is_mount, 20)
        return mount

    def run(
        self,
        library: Path,
        seconds: float,
        step_seconds: float,
        *arguments: str | Path,
        workers: int | None = 2,
        warm_up: float = 0.0,
    ) -> Run:
        """A training with these arguments, and after `warm_up` the agent beside it for so long.

        A step keeps the GPU busy for `step_seconds`. `workers` None is one for each processor.
        """
        live, said = self.folder / "live", self.folder / "train.log"
        live.write_bytes(struct.pack("dd", 0.0, 60.0))
        command = (
            *(sys.executable, HERE / "train.py", "--live", live),
            *("--step-seconds", step_seconds, "--workers", workers or os.cpu_count() or 1),
            *arguments,
        )
        with said.open("wb") as log:
            training = subprocess.Popen(
                [*_DIES_WITH_US, *_entering(self.cgroups), *map(str, command)],
                stderr=log,
                start_new_session=True,
            )
        self.undo.callback(_end, training)
        until(lambda: _steps(said) >= 2, 90)
        time.sleep(warm_up)
        place = self.folder / "agent"
        place.mkdir()
        server = Server(library, place, scenario=SCENARIO.format(live=live, pid=training.pid))
        self.undo.callback(server.kill)
        agent = server.start()
        begun, before = time.monotonic(), _steps(said)
        while time.monotonic() - begun < seconds:
            assert training.poll() is None, f"{training.poll()}: {said.read_text()[-500:]}"
            assert agent.poll() is None, f"{agent.poll()}: {server.log.read_text()[-500:]}"
            time.sleep(0.5)
        worked = (_steps(said) - before) * step_seconds
        stop(agent, within=20)
        return Run(server, 1.0 - worked / seconds)


@dataclass(frozen=True)
class Run:
    """What the agent wrote, and the share of its time in which the GPU waited in truth."""

    server: Server
    lost_ratio: float


def _steps(said: Path) -> int:
    """How many steps a training has done."""
    lines = said.read_text().splitlines()
    return int(lines[-1].split()[-1]) if lines else 0


def disk_below(path: Path) -> str:
    """The name of the whole disk that a path lies on."""
    number = os.stat(path).st_dev
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    disk = place.parent if (place / "partition").exists() else place
    need((disk / "dev").exists(), "disk", "a folder on a block device (set TMPDIR)")
    return disk.name


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """A stage that is taken down at the end, whatever happened; by the next, if we are killed."""
    need(os.geteuid() == 0, "root", "run it as root: it mounts file systems")
    clear_away(_CGROUPS)
    place = folder / NAME.format(os.getpid())
    place.mkdir()
    with contextlib.ExitStack() as undo:
        yield Stage(place, undo)


def _entering(cgroups: list[Path]) -> list[str]:
    script = "".join(f"echo $$ > {group}/cgroup.procs; " for group in cgroups)
    return ["/bin/sh", "-c", script + 'exec "$@"', "sh"]


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def _remove_cgroup(group: Path) -> None:
    def gone() -> bool:
        with contextlib.suppress(OSError):
            group.rmdir()
        return not group.exists()

    until(gone, 20)


def _run(*command: str | Path) -> str:
    program = shutil.which(str(command[0]), path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    done = subprocess.run(
        [program or command[0], *command[1:]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
