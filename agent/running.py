"""The daemon that runs: found by its store's lock, asked by signals."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from agent.host.hostfs import HostFs
from telemetry.store_lock import lock_path

RELEASE, RESUME = signal.SIGRTMIN, signal.SIGRTMIN + 1
"""What `talla-agent release` sends; each says what is wanted, unlike SIGUSR1, which changes it."""
_DEVICES = "/dev/nvidia"


def is_running(store: Path) -> bool:
    """Whether a process holds the store's lock."""
    try:
        descriptor = os.open(lock_path(store), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def daemon_of(store: Path, hostfs: HostFs) -> int | None:
    """The process id of the daemon that writes the store, None where none does."""
    if not is_running(store):
        return None
    try:
        pid = int(lock_path(store).read_text("ascii"))
    except (OSError, ValueError):
        return None
    # The lock is held, and by a program of ours: not by one that an import or a copy started.
    return pid if b"agent" in _command(hostfs, pid).split(b"\0") else None


def nvml_children(hostfs: HostFs, parent: int) -> list[int]:
    """The daemon's processes that hold NVML, and with it the device files."""
    found = []
    for name in hostfs.names("/proc"):
        if name.isdigit() and b"agent.nvml.child" in _command(hostfs, int(name)).split(b"\0"):
            status = hostfs.maybe(f"/proc/{name}/status") or ""
            if f"\nPPid:\t{parent}\n" in status:
                found.append(int(name))
    return found


def holders(hostfs: HostFs) -> Iterator[tuple[int, str]]:
    """Processes that have device files of NVIDIA open, as far as this user may look, by name."""
    for name in hostfs.names("/proc"):
        if not name.isdigit():
            continue
        links = (hostfs.link(f"/proc/{name}/fd/{fd}") for fd in hostfs.names(f"/proc/{name}/fd"))
        if any(link is not None and link.startswith(_DEVICES) for link in links):
            yield int(name), hostfs.maybe(f"/proc/{name}/comm") or "unknown"


def _command(hostfs: HostFs, pid: int) -> bytes:
    try:
        return hostfs.bytes(f"/proc/{pid}/cmdline")
    except OSError:
        return b""
