"""From where a job reads its data: the loop devices and remote file systems of its open files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from agent.host.hostfs import HostFs
from agent.host.mounts import MountPoint, holding, parse_mountinfo

_AGAIN = 30.0
"""Seconds between two looks at a process: a data set stays in use for longer."""
_MOST_WORKERS = 4
"""Workers of a process that are looked at: they read from the same data set."""
_MOST_DESCRIPTORS = 1024
_LOOP_MAJOR = "7:"  # Documentation/admin-guide/devices.txt


@dataclass(slots=True)
class _Look:
    at: float
    started: int
    loops: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    before: frozenset[str] = field(default=frozenset())
    """The numbers of the look before: a file that is opened anew for each batch is often shut."""
    refused: bool = False


class DataFiles:
    """Where the files lie that GPU processes and their workers have open."""

    def __init__(self, hostfs: HostFs) -> None:
        self._hostfs = hostfs
        self._looks: dict[int, _Look] = {}
        self._table: tuple[str, list[MountPoint]] = "", []
        """The last mount table and what is in it: most processes have the same one."""

    def look(self, pid: int, started: int, workers: Iterable[int], now: float) -> None:
        """Looks at a process and some of its workers, now and then; `started` tells it from
        another one of the same number. Raises OSError where it may not be looked into."""
        last = self._looks.get(pid)
        if last is not None and last.started == started and now - last.at < _AGAIN:
            return
        before = last.numbers if last is not None and last.started == started else frozenset()
        found = self._looks[pid] = _Look(now, started, before=before)
        data = self._hostfs.maybe(f"/proc/{pid}/mountinfo") or ""
        if data != self._table[0]:
            self._table = data, parse_mountinfo(data)
        mounts = self._table[1]
        if not any(map(_counts, mounts)):
            return
        loops, numbers = set(), set()
        try:
            opened = self._opened(pid, workers)
        except PermissionError:
            found.refused = True
            raise
        for path in opened:
            mount = holding(mounts, path)
            if mount is None or not _counts(mount):
                continue
            if mount.network or mount.fuse:
                numbers.add(mount.number)
            else:
                loops.add(mount.source.rsplit("/", 1)[-1])
        found.loops, found.numbers = frozenset(loops), frozenset(numbers)

    def forget(self, keep: frozenset[int]) -> None:
        """Drops all processes but these."""
        self._looks = {pid: look for pid, look in self._looks.items() if pid in keep}

    def loops(self) -> frozenset[str]:
        """Loop devices that carry an open file: a data set in an image is read through one."""
        return frozenset(name for look in self._looks.values() for name in look.loops)

    def numbers(self) -> frozenset[str] | None:
        """`major:minor` of the network and FUSE file systems on which a file is, or was, open;
        None where that is not known of all processes, or of none."""
        if not self._looks or any(look.refused for look in self._looks.values()):
            return None
        return frozenset(
            number for look in self._looks.values() for number in look.numbers | look.before
        )

    def _opened(self, pid: int, workers: Iterable[int]) -> set[str]:
        folder = self._hostfs.link(f"/proc/{pid}/cwd")
        found = {folder} if folder else set()
        for task in (pid, *list(workers)[:_MOST_WORKERS]):
            try:
                opened = self._hostfs.opened(task, _MOST_DESCRIPTORS)
            except PermissionError:
                if task == pid:
                    raise
                continue
            except ProcessLookupError:
                continue
            found.update(link for link in opened if link.startswith("/"))
        return found


def _counts(mount: MountPoint) -> bool:
    """A mount that somebody may wait for, and that no row of a whole device shows."""
    on_loop = mount.number.startswith(_LOOP_MAJOR) and mount.source.startswith("/dev/loop")
    return mount.network or mount.fuse or on_loop
