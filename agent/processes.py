"""What one process of a GPU and its workers do, from /proc/PID."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum

from agent.hostfs import HostFs, decode

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO, include/linux/proc_ns.h

MOST_WORKERS = 64
"""Of one process: more dataloader workers than any server has use for."""
MOST_THREADS = 32
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


@dataclass(frozen=True, slots=True)
class Stat:
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


@dataclass(slots=True)
class _Task:
    """The last counts of a process or worker."""

    started: int
    cpu_ticks: int
    read_bytes: int | None = None
    write_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Activity:
    """A process with its workers, since the reading before.

    Rates are None at the first reading, and those of I/O where it may not be read. `waiting` of
    `looked_at` tasks were in uninterruptible sleep (state D), which is nearly always I/O.
    """

    stat: Stat
    waiting: float
    looked_at: int
    cpu_cores: float | None = None
    read_bytes_per_second: float | None = None
    write_bytes_per_second: float | None = None


@dataclass(slots=True)
class Tree:
    """One process that the driver lists on a GPU, and the workers that it started.

    A worker is a child of the process, or of a worker, that is on no GPU itself: dataloader
    workers, above all.
    """

    hostfs: HostFs
    pid: int
    io_reason: str | None = None
    """Why I/O cannot be read, if so."""
    workers_reason: str | None = None
    _tasks: dict[int, _Task] = field(default_factory=dict)
    _workers: set[int] = field(default_factory=set)
    _readings: int = 0
    _time: float = 0.0

    def read(self, now: float, on_gpus: frozenset[int]) -> Activity:
        """What it does now. Raises OSError where the process is gone or hidden."""
        stat = self.stat()
        own = self._tasks.get(self.pid)
        if own is not None and own.started != stat.started:  # the pid was given anew
            self._tasks.clear()
            self._workers.clear()
            self._readings = 0
        elapsed = now - self._time
        rated = self._readings > 0 and elapsed > 0
        self._time = now
        self.io_reason = None
        self._find_workers(on_gpus)
        self._readings += 1
        waiting, looked_at = 0.0, 1
        sums = self._account(self.pid, stat)
        readable = self.io_reason is None
        if not self._workers:
            waiting = self._waiting_threads(stat)
        else:
            waiting = 1.0 if stat.state == "D" else 0.0
        for pid in sorted(self._workers):
            try:
                worker = self._stat(pid)
                if worker.dead:
                    continue
                grown = self._account(pid, worker)
            except (OSError, ValueError, IndexError):
                self._forget(pid)
                continue
            sums = (sums[0] + grown[0], sums[1] + grown[1], sums[2] + grown[2])
            waiting += worker.state == "D"
            looked_at += 1
        if not rated:
            return Activity(stat, waiting, looked_at)
        cpu, read, written = sums
        return Activity(
            stat,
            waiting,
            looked_at,
            cpu_cores=cpu / _CLOCK_TICKS / elapsed,
            read_bytes_per_second=read / elapsed if readable else None,
            write_bytes_per_second=written / elapsed if readable else None,
        )

    def stat(self) -> Stat:
        """The process alone. Raises OSError where it is gone or hidden."""
        return self._stat(self.pid)

    def _stat(self, pid: int) -> Stat:
        return parse_stat(self.hostfs.bytes(f"/proc/{pid}/stat"))

    def _account(self, pid: int, stat: Stat) -> tuple[int, int, int]:
        """What the task's counters grew by: processor ticks, bytes read, bytes written.

        A task seen for the first time, and a counter that fell, has grown by nothing yet.
        """
        read = written = None
        try:
            read, written = self._io(pid)
        except (OSError, ValueError) as error:
            if pid == self.pid:
                self.io_reason = getattr(error, "strerror", None) or str(error)
        now = _Task(stat.started, stat.cpu_ticks, read, written)
        before = self._tasks.get(pid)
        self._tasks[pid] = now
        if before is None or before.started != stat.started:
            return 0, 0, 0
        return (
            max(0, now.cpu_ticks - before.cpu_ticks),
            _growth(now.read_bytes, before.read_bytes),
            _growth(now.write_bytes, before.write_bytes),
        )

    def _io(self, pid: int) -> tuple[int, int]:
        data = self.hostfs.bytes(f"/proc/{pid}/io")
        # rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled_write_bytes
        counts = {
            line[0]: int(line[1]) for row in data.splitlines() if len(line := row.split()) > 1
        }
        return counts[b"read_bytes:"], counts[b"write_bytes:"]

    def _find_workers(self, on_gpus: frozenset[int]) -> None:
        deep = self._readings % _DEEP_EVERY == 0
        found = set(self._children(self.pid, deep, report=True))
        if deep:
            # Also what the workers started, and theirs.
            level = found | self._workers
            for _ in range(2):
                level = {c for pid in level for c in self._children(pid, False)} - found
                found |= level
        self._workers |= found
        self._workers -= on_gpus
        for pid in sorted(self._workers)[MOST_WORKERS:]:
            self._forget(pid)

    def _children(self, pid: int, deep: bool, report: bool = False) -> list[int]:
        # A child belongs to the thread that started it, mostly the first.
        threads = [str(pid)]
        if deep:
            threads += self.hostfs.names(f"/proc/{pid}/task")[:MOST_THREADS]
        children: list[int] = []
        for thread in dict.fromkeys(threads):
            try:
                data = self.hostfs.bytes(f"/proc/{pid}/task/{thread}/children")
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

    def _waiting_threads(self, stat: Stat) -> float:
        """Of a process without workers, the share of its active threads that wait.

        Loaders of such a process are threads of its own; those that sleep have nothing to do.
        """
        if stat.threads <= 1:
            return 1.0 if stat.state == "D" else 0.0
        waiting = active = 0
        for thread in self.hostfs.names(f"/proc/{self.pid}/task")[:MOST_THREADS]:
            try:
                data = self.hostfs.bytes(f"/proc/{self.pid}/task/{thread}/stat")
            except OSError:
                continue
            state = data.rpartition(b")")[2].strip()[:1]
            waiting += state == b"D"
            active += state in (b"D", b"R")
        return waiting / active if active else 0.0

    def _forget(self, pid: int) -> None:
        self._workers.discard(pid)
        self._tasks.pop(pid, None)


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
            return (
                "the agent runs in a pid namespace of its own: run it on the machine itself,"
                " or its container with --pid=host (hostPID in Kubernetes)"
            )
        return "/proc is mounted with hidepid: add the agent's user to the group of its gid= option"
