"""Mounts: size and use of each, and what network mounts transfer and wait for."""

from __future__ import annotations

import math

from agent.background import Background
from agent.collectors.collector import Counters, Sources
from agent.host.block import carriers
from agent.host.hostfs import HostFs
from agent.host.mounts import MOUNTINFO, MountPoint, read_mounts, relevant
from agent.host.netmounts import parse_cifs_stats, parse_mountstats
from telemetry.window import Key, Sample

_LOOK_AGAIN = 30.0
_SIZE_EVERY = 60.0
_MILLI, _MICRO = 1e-3, 1e-6
_CIFS = ("cifs", "smb3")
_NFS = ("nfs", "nfs4")
_TCP = "SMB leaves sending again to TCP, which does not tell it by mount"


class _Mount:
    """One mount."""

    __slots__ = ("counters", "key", "point", "texts", "timed")

    def __init__(self, hostfs: HostFs, point: MountPoint) -> None:
        self.point = point
        self.key: Key = ("mount", point.name)
        self.counters = Counters()
        self.timed = False
        """Whether the kernel keeps the times of the mount's requests."""
        self.texts = {"fstype": point.fstype, "source": point.source}
        if not point.network:
            devices = carriers(hostfs, point.number, point.source)
            if devices:
                self.texts["device"] = ",".join(devices)


class MountCollector:
    """The mounts that `agent.host.mounts.relevant` chooses.

    Size and use come from statvfs(2) once a minute, in a thread of its own: a dead server blocks
    it for good. Transfers of NFS come from /proc/self/mountstats, of SMB from /proc/fs/cifs/Stats;
    neither asks the server. SMB's round trips are those of all shares of the server. Of other
    network and FUSE mounts only size and use can be read.
    """

    name = "mount"
    every = 1.0
    read_at: float | None = None

    def __init__(self, sources: Sources) -> None:
        self._hostfs = sources.hostfs
        self._data_paths = sources.data_paths
        self._mountstats = sources.hostfs.kept("/proc/self/mountstats")
        self._cifs = sources.hostfs.kept("/proc/fs/cifs/Stats")
        self._sizes: Background[str, tuple[int, int]] = Background(sources.hostfs.size)
        self._mounts: dict[MountPoint, _Mount] = {}
        self._look_at = -math.inf
        self._size_at = -math.inf
        self._opened: frozenset[str] | None = None
        self._reasons: dict[str, str] = {}
        self.errors_total = 0

    def opened(self, numbers: frozenset[str] | None) -> None:
        """`major:minor` of the file systems on which a GPU's job has a file open; None: unknown."""
        self._opened = numbers

    def collect(self, now: float, sample: Sample) -> None:
        if now >= self._look_at:
            self._look(now)
        if now >= self._size_at:
            self._size_at = now + _SIZE_EVERY
            self._sizes.ask((point.path for point in self._mounts), now)
        else:
            self._sizes.tend(now)
        for point, mount in self._mounts.items():
            row: dict[str, float] = {}
            size = self._sizes.answers.get(point.path)
            if size is not None and size[0] > 0:  # some FUSE file systems say 0
                row["size_bytes"], row["used_bytes"] = float(size[0]), float(size[1])
            if self._opened is not None and (point.network or point.fuse):
                row["job_open_ratio"] = 1.0 if point.number in self._opened else 0.0
            if row or point.network or point.fuse:
                sample.rows[mount.key] = row
                sample.texts[mount.key] = mount.texts
        self._add_nfs(now, sample)
        self._add_cifs(now, sample)

    def wait(self, seconds: float) -> None:
        """Waits until the sizes are there, at most so long: for `once`, never for the daemon."""
        self._sizes.wait(seconds)

    def unavailable(self) -> dict[str, str]:
        reasons = dict(self._reasons)
        for point, mount in self._mounts.items():
            reason = self._sizes.reasons.get(point.path)
            if reason is not None:
                reasons[f"mount {mount.key[1]} size_bytes"] = reason
            untimed = self._untimed(point, mount)
            if untimed is not None:
                reasons[f"mount {mount.key[1]} read_round_trip_seconds"] = untimed
            if point.fstype in _CIFS:
                reasons[f"mount {mount.key[1]} retransmits_per_second"] = _TCP
        return reasons

    @staticmethod
    def _untimed(point: MountPoint, mount: _Mount) -> str | None:
        if point.fuse:
            return "the kernel counts neither requests nor round trips of FUSE mounts"
        if point.fstype in _CIFS:
            return None if mount.timed else "this kernel keeps no times of SMB (CONFIG_CIFS_STATS2)"
        if point.network and point.fstype not in _NFS:
            return f"the kernel tells no transfers and round trips of {point.fstype} mounts"
        return None

    def _look(self, now: float) -> None:
        self._look_at = now + _LOOK_AGAIN
        try:
            points = relevant(read_mounts(self._hostfs), self._data_paths)
        except OSError as error:
            self.errors_total += 1
            self._reasons["mount"] = f"{MOUNTINFO}: {error.strerror}"
            return
        self._reasons.pop("mount", None)
        if points:
            self.read_at = now
        if not self._mounts.keys() >= set(points):
            self._size_at = -math.inf
        self._mounts = {p: self._mounts.get(p) or _Mount(self._hostfs, p) for p in points}
        self._sizes.forget(point.path for point in points)

    def _add_nfs(self, now: float, sample: Sample) -> None:
        mounts = [m for p, m in self._mounts.items() if p.fstype in _NFS]
        if not mounts:
            return
        try:
            counted = parse_mountstats(self._mountstats.read())
        except OSError as error:
            self.errors_total += 1
            self._reasons["mount read_bytes_per_second"] = (
                f"/proc/self/mountstats: {error.strerror}"
            )
            return
        self._reasons.pop("mount read_bytes_per_second", None)
        self.read_at = now
        for mount in mounts:
            counters = counted.get(mount.point.path)
            if counters is None:
                mount.counters.restart()
                continue
            grown = mount.counters.advance(counters.values(), now)
            if grown is None:
                continue
            elapsed, (read, written, reads, queue, round_trip, repeated) = grown
            row = sample.rows[mount.key]
            if read is not None:
                row["read_bytes_per_second"] = read / elapsed
            if written is not None:
                row["write_bytes_per_second"] = written / elapsed
            if repeated is not None:
                row["retransmits_per_second"] = repeated / elapsed
            if reads and round_trip is not None:
                row["read_round_trip_seconds"] = round_trip * _MILLI / reads
            if reads and queue is not None:
                row["read_queue_seconds"] = queue * _MILLI / reads

    def _add_cifs(self, now: float, sample: Sample) -> None:
        mounts = [m for p, m in self._mounts.items() if p.fstype in _CIFS]
        if not mounts:
            return
        try:
            counted = parse_cifs_stats(self._cifs.read())
        except OSError as error:
            self.errors_total += 1
            self._reasons["mount cifs"] = f"/proc/fs/cifs/Stats: {error.strerror}"
            return
        for mount in mounts:
            moved = counted.get(mount.point.source.rstrip("/").lower())
            if moved is None:
                mount.counters.restart()
                continue
            grown = mount.counters.advance(moved, now)
            self.read_at = now
            mount.timed = len(moved) > 2
            if grown is not None:
                elapsed, (read, written, *timed) = grown
                row = sample.rows[mount.key]
                if read is not None:
                    row["read_bytes_per_second"] = read / elapsed
                if written is not None:
                    row["write_bytes_per_second"] = written / elapsed
                match timed:
                    case [int(reads), int(micros)] if reads and read:
                        row["read_round_trip_seconds"] = micros * _MICRO / reads
