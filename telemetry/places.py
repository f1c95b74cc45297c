"""Where a job waits: the disk, mount or network port that its windows point to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from telemetry.state import Cause, Place
from telemetry.thresholds import Thresholds
from telemetry.window import Frame


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was seen of the host beside the GPUs, over about the same windows."""

    host: Frame | None = None
    disks: tuple[Frame, ...] = ()
    mounts: tuple[Frame, ...] = ()
    nics: tuple[Frame, ...] = ()


@dataclass(slots=True)
class _Seen:
    """A disk, mount or port: where the GPU's windows find its own."""

    frame: Frame
    index: Sequence[int | None]
    fstype: str | None = None

    @property
    def name(self) -> str:
        return self.frame.key[1]

    def cell(self, name: str, i: int) -> float | None:
        j = self.index[i]
        column = self.frame.columns.get(name)
        return None if j is None or column is None else column[j]


class Places:
    """The disks, mounts and ports of a host, window by window of one GPU."""

    def __init__(self, gpu: Frame, surroundings: Surroundings, thresholds: Thresholds) -> None:
        self._gpu, self._surroundings, self._t = gpu, surroundings, thresholds

    @cached_property
    def _disks(self) -> list[_Seen]:
        return [_Seen(f, aligned(self._gpu, f)) for f in self._surroundings.disks]

    @cached_property
    def _mounts(self) -> list[_Seen]:
        frames = self._surroundings.mounts
        return [_Seen(f, aligned(self._gpu, f), _fstype(f)) for f in frames]

    @cached_property
    def _nics(self) -> list[_Seen]:
        return [_Seen(f, aligned(self._gpu, f)) for f in self._surroundings.nics]

    def disk(self, i: int) -> tuple[Place | None, str | None]:
        """The disk at which most reads wait at a time (Little's law: their rate times their wait),
        with a line of evidence."""
        best: tuple[float, float, _Seen] | None = None
        for disk in self._disks:
            wait = disk.cell("read_await_seconds", i)
            if wait is None:
                continue
            rate = disk.cell("reads_per_second", i)
            waiting = wait if rate is None else rate * wait
            if best is None or waiting > best[0]:
                best = waiting, wait, disk
        if best is None:
            return None, None
        _, wait, disk = best
        read = disk.cell("read_bytes_per_second", i)
        line = f"disk {disk.name}: read_await_seconds {wait:.3g}"
        if read is not None:
            line += f", read_bytes_per_second {read:.3g}"
        return Place("disk", disk.name, bytes_per_second=read), line

    def written(self, i: int) -> tuple[Place | None, str | None]:
        """The disk that most is written to."""
        best: tuple[float, _Seen] | None = None
        for disk in self._disks:
            rate = disk.cell("write_bytes_per_second", i)
            if rate and (best is None or rate > best[0]):
                best = rate, disk
        if best is None:
            return None, None
        rate, disk = best
        line = f"disk {disk.name}: write_bytes_per_second {rate:.3g}"
        return Place("disk", disk.name, bytes_per_second=rate), line

    def mount(self, i: int, *, certain: bool) -> tuple[Cause, Place, str] | None:
        """The network or FUSE mount that the job reads most from: its cause, itself, and a line.

        With `certain` some other sign says that it is a mount; without, the mount itself must
        show that it is read from: by its own counters, or, where it has none (FUSE), by a file
        that the job has open on it while its tasks get next to nothing from block devices.
        """
        best: tuple[tuple[float, float], _Seen, Cause, float | None] | None = None
        for mount in self._mounts:
            kind = self._kind(mount.fstype)
            if kind is None:
                continue
            read = mount.cell("read_bytes_per_second", i)
            opened = mount.cell("job_open_ratio", i)
            if not (certain or self._is_read(read, opened, i)):
                continue
            rank = (read or 0.0, opened or 0.0)
            if best is None or rank > best[0]:
                best = rank, mount, kind, read
        if best is None:
            return None
        _, mount, kind, read = best
        line = f"mount {mount.name} ({mount.fstype}):"
        if read is not None:
            line += f" read_bytes_per_second {read:.3g}"
        else:
            line += f" job_open_ratio {mount.cell('job_open_ratio', i) or 0.0:.2f}"
        wait = mount.cell("read_round_trip_seconds", i)
        if wait is not None:
            line += f", read_round_trip_seconds {wait:.3g}"
        ceiling = None
        port = self._port(i) if kind is Cause.NETWORK_STORAGE else None
        if port is not None and (bits := port.cell("speed_bits_per_second", i)):
            ceiling = bits / 8
            line += f", the link of {port.name} carries {ceiling:.3g}"
        place = Place("mount", mount.name, mount.fstype, read, ceiling)
        return kind, place, line

    def both_ways(self, i: int) -> tuple[Place, str] | None:
        """The port that carries most, where it sends about as much as it receives: as ranks that
        exchange gradients do, and a job that reads data does not."""
        port = self._port(i)
        if port is None:
            return None
        rx = port.cell("rx_bytes_per_second", i)
        tx = port.cell("tx_bytes_per_second", i)
        if not rx or not tx or min(rx, tx) < self._t.exchange_balance_ratio * max(rx, tx):
            return None
        bits = port.cell("speed_bits_per_second", i)
        ceiling = bits / 8 if bits else None
        line = f"nic {port.name}: rx_bytes_per_second {rx:.3g}, tx_bytes_per_second {tx:.3g}"
        if ceiling is not None:
            line += f" of {ceiling:.3g}"
        return Place("nic", port.name, None, max(rx, tx), ceiling), line

    def _port(self, i: int) -> _Seen | None:
        rates = [(nic.cell("rx_bytes_per_second", i) or 0.0, nic) for nic in self._nics]
        rate, port = max(rates, key=lambda pair: pair[0], default=(0.0, None))
        return port if rate > 0 else None

    def _is_read(self, read: float | None, opened: float | None, i: int) -> bool:
        at_least = self._t.mount_read_bytes_per_second
        if read is not None:
            return read >= at_least
        if opened is None or opened < self._t.open_ratio:
            return False
        column = self._gpu.columns.get("job_read_bytes_per_second")
        from_devices = None if column is None else column[i]
        return from_devices is not None and from_devices < at_least

    def _kind(self, fstype: str | None) -> Cause | None:
        if fstype is None or fstype in self._t.local_fuse_file_systems:
            return None
        if fstype.startswith("fuse"):
            return Cause.FUSE_OR_OBJECT_STORAGE
        return Cause.NETWORK_STORAGE if fstype in self._t.network_file_systems else None


def aligned(frame: Frame, other: Frame) -> Sequence[int | None]:
    """For each window of a frame the place of the other's window with the same start; a range
    where both have the same windows."""
    if frame.start == other.start:
        return range(len(frame.start))
    places = {start: j for j, start in enumerate(other.start)}
    return [places.get(start) for start in frame.start]


def _fstype(frame: Frame) -> str | None:
    for texts in reversed(frame.texts):
        if "fstype" in texts:
            return texts["fstype"]
    return None
