"""What one process of a GPU and its workers do, from /proc/PID."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from operator import add
from typing import NamedTuple

from agent.host.hostfs import HostFs, KeptFile, decode, number_after
from agent.host.wsl import PROCESSES, is_wsl

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO, include/linux/proc_ns.h

MOST_WORKERS = 64
"""Of one process: more dataloader workers than any server has use for."""
MOST_THREADS = 8
"""Of a process without workers, looked at in one reading; the next one looks at others."""
_KEPT_WORKERS = 16
"""Workers whose files stay open; so a process takes at most 35 descriptors."""
_MOST_LISTED = 256
_STATE = 160
"""Bytes of a stat within which the state is, behind a name of 64 bytes at most."""
_IO = (b"\nread_bytes:", b"\nwrite_bytes:", b"\nsyscr:", b"\nsyscw:")
"""What is read of /proc/PID/io: bytes from and to storage; calls, whatever they read and write."""
_NOTHING = (0,) * (1 + len(_IO))
_DEEP_EVERY = 6
"""Readings between two looks at every thread's and worker's children."""


class Life(StrEnum):
    """Whether a process that the driver lists is there."""

    RUNNING = "running"
    ZOMBIE = "zombie"
    """Ended and not yet reaped: what it held may still be held."""
    GONE = "gone"
    HIDDEN = "hidden"
    """Of another pid namespace, or /proc hides it: nothing can be said of it."""


class Stat(NamedTuple):
    """The parts of /proc/PID/stat that are used (man 5 proc_pid_stat)."""

    name: str
    state: str
    parent: int
    cpu_ticks: int
    threads: int
    started: int
    resident_bytes: int

    @property
    def dead(self) -> bool:
        """A zombie's first thread may have ended alone: with others left the process runs."""
        return self.state in "ZXx" and self.threads <= 1


def parse_stat(data: bytes) -> Stat:
    """Raises ValueError or IndexError where the form is another one.

    The name may hold anything, closing brackets and line ends too.
    """
    head, bracket, tail = data.rpartition(b")")
    if not bracket:
        raise ValueError("no name")
    fields = tail.split()
    return Stat(
        name=decode(head.partition(b"(")[2]),
        state=fields[0].decode("ascii"),
        parent=int(fields[1]),
        cpu_ticks=int(fields[11]) + int(fields[12]),
        threads=int(fields[17]),
        started=int(fields[19]),
        resident_bytes=int(fields[21]) * _PAGE_BYTES,
    )


class _Task:
    """A process or worker, and its counts at the last reading."""

    __slots__ = ("_io", "_keep", "_stat", "counts", "io_reason", "started")

    def __init__(self, hostfs: HostFs, pid: int, keep: bool) -> None:
        self._stat = hostfs.kept(f"/proc/{pid}/stat")
        self._io = hostfs.kept(f"/proc/{pid}/io")
        self._keep = keep
        self.started: int | None = None
        self.counts: tuple[int | None, ...] = (0, None, None, None, None)
        self.io_reason: str | None = None

    def stat(self) -> Stat:
        """Raises OSError where the process is gone or hidden, ValueError for an odd form."""
        return parse_stat(self._read(self._stat))

    def grown(self, stat: Stat) -> tuple[int, ...]:
        """What it did since the last call: processor ticks, then `_IO`.

        A task that is met for the first time, and a counter that fell, has done nothing yet.
        """
        self.io_reason = None
        data = b""
        try:
            data = self._read(self._io)
        except OSError as error:
            self.io_reason = error.strerror
        io = (number_after(data, label) for label in _IO)
        before, self.counts = self.counts, (stat.cpu_ticks, *io)
        known, self.started = self.started == stat.started, stat.started
        if not known:
            return _NOTHING
        return tuple(map(_growth, self.counts, before))

    def _read(self, file: KeptFile) -> bytes:
        try:
            return file.record(4096)
        except ProcessLookupError:
            return file.record(4096)  # the process that was; a new one may bear the pid
        finally:
            if not self._keep:
                file.close()


@dataclass(frozen=True, slots=True)
class Activity:
    """A process with its workers, since the reading before.

    Rates are None at the first reading, and those of I/O where it may not be read. `waiting` of
    `looked_at` tasks were in uninterruptible sleep (state D), which is nearly always I/O, and
    `computing` of its `workers` on a processor or ready for one (state R).
    """

    stat: Stat
    waiting: float
    looked_at: int
    computing: int = 0
    workers: int = 0
    cpu_cores: float | None = None
    read_bytes_per_second: float | None = None
    write_bytes_per_second: float | None = None
    read_calls_per_second: float | None = None
    write_calls_per_second: float | None = None


class Tree:
    """One process that the driver lists on a GPU, and the workers that it started.

    A worker is a child of the process, or of a worker, that is on no GPU itself: dataloader
    workers, above all. With `keep` the files stay open between readings, at a third of the cost.
    """

    def __init__(self, hostfs: HostFs, pid: int, *, keep: bool = False) -> None:
        self.pid = pid
        self.workers_reason: str | None = None
        """Why workers cannot be found, if so."""
        self._hostfs = hostfs
        self._keep = keep
        self._own = _Task(hostfs, pid, keep)
        self._workers: dict[int, _Task] = {}
        self._threads: list[str] = []
        self._readings = 0
        self._time = 0.0

    @property
    def workers(self) -> tuple[int, ...]:
        """The pids of its workers, as last found."""
        return tuple(self._workers)

    @property
    def io_reason(self) -> str | None:
        """Why I/O cannot be read, if so."""
        return self._own.io_reason

    def read(self, now: float, on_gpus: frozenset[int]) -> Activity:
        """What it does now. Raises OSError where the process is gone or hidden."""
        stat = self._own.stat()
        if self._own.started not in (None, stat.started):  # the pid was given anew
            self._workers.clear()
            self._readings = 0
        elapsed = now - self._time
        rated = self._readings > 0 and elapsed > 0
        self._time = now
        self._find_workers(on_gpus, deep=self._readings % _DEEP_EVERY == 0)
        self._readings += 1
        sums = self._own.grown(stat)
        waiting, looked_at = (1.0 if stat.state == "D" else 0.0), 1
        computing = workers = 0
        for pid, task in list(self._workers.items()):
            try:
                worker = task.stat()
            except (OSError, ValueError, IndexError):
                del self._workers[pid]
                continue
            if worker.dead:
                continue
            grown = task.grown(worker)
            sums = tuple(map(add, sums, grown))
            waiting += worker.state == "D"
            looked_at += 1
            computing += worker.state == "R"
            workers += 1
        if not self._workers and stat.threads > 1:
            waiting = self._waiting_threads()
        if not rated:
            return Activity(stat, waiting, looked_at, computing, workers)
        rates = [sums[0] / _CLOCK_TICKS / elapsed]
        if self._own.io_reason is None:
            rates += [count / elapsed for count in sums[1:]]
        return Activity(stat, waiting, looked_at, computing, workers, *rates)

    def stat(self) -> Stat:
        """The process alone. Raises OSError where it is gone or hidden."""
        return self._own.stat()

    def _find_workers(self, on_gpus: frozenset[int], deep: bool) -> None:
        if deep:
            self._threads = self._hostfs.names(f"/proc/{self.pid}/task")[:_MOST_LISTED]
        found = set(self._children(self.pid, self._threads if deep else (), report=True))
        if deep:
            # Also what the workers started, and theirs.
            level = found | self._workers.keys()
            for _ in range(2):
                level = {c for pid in level for c in self._children(pid)} - found
                found |= level
        for pid in on_gpus & self._workers.keys():
            del self._workers[pid]
        for pid in sorted(found - on_gpus - self._workers.keys()):
            if len(self._workers) >= MOST_WORKERS:
                break
            keep = self._keep and len(self._workers) < _KEPT_WORKERS
            self._workers[pid] = _Task(self._hostfs, pid, keep)

    def _children(self, pid: int, threads: Iterable[str] = (), report: bool = False) -> list[int]:
        # A child belongs to the thread that started it, mostly the first.
        children: list[int] = []
        for thread in dict.fromkeys((str(pid), *threads)):
            try:
                data = self._hostfs.bytes(f"/proc/{pid}/task/{thread}/children")
            except OSError as error:
                if report and thread == str(pid):
                    self.workers_reason = (
                        "this kernel has no /proc/PID/task/TID/children (CONFIG_PROC_CHILDREN)"
                        if isinstance(error, FileNotFoundError)
                        else error.strerror
                    )
                continue
            if report:
                self.workers_reason = None
            children += map(int, data.split())
        return children

    def _waiting_threads(self) -> float:
        """Of a process without workers, the share of its active threads that wait.

        Loaders of such a process are threads of its own; those that sleep have nothing to do. Some
        are looked at in each reading, in turns.
        """
        turn = self._readings * MOST_THREADS % max(1, len(self._threads))
        threads = (self._threads[turn:] + self._threads[:turn])[:MOST_THREADS]
        waiting = active = 0
        for thread in threads:
            try:
                data = self._hostfs.bytes(f"/proc/{self.pid}/task/{thread}/stat", _STATE)
            except OSError:
                continue
            state = data.rpartition(b")")[2].strip()[:1]
            waiting += state == b"D"
            active += state in (b"D", b"R")
        return waiting / active if active else 0.0


def _growth(now: int | None, before: int | None) -> int:
    return max(0, now - before) if now is not None and before is not None else 0


class Sight:
    """Whether an absent /proc/PID means that the process is gone."""

    def __init__(self, hostfs: HostFs) -> None:
        self._hostfs = hostfs
        namespace = hostfs.link("/proc/self/ns/pid")
        self.initial = namespace == _INITIAL_PID_NAMESPACE
        """Whether our pids are the machine's, which are those that the driver lists."""

    @property
    def whole(self) -> bool:
        """Whether we see every process of the machine.

        Not within a container's pid namespace (the driver lists the machine's pids), nor where
        /proc is mounted with hidepid: then not even process 1 is to be seen.
        """
        return self.initial and self._hostfs.exists("/proc/1")

    def absent(self) -> Life:
        """What a listed process is that has no /proc/PID."""
        return Life.GONE if self.whole else Life.HIDDEN

    def reason(self) -> str:
        """Why processes are hidden, and what to do."""
        if not self.initial:
            if is_wsl(self._hostfs):
                return PROCESSES
            return (
                "the agent runs in a pid namespace of its own: run it on the machine itself,"
                " or its container with --pid=host (hostPID in Kubernetes)"
            )
        return "/proc is mounted with hidepid: add the agent's user to the group of its gid= option"
