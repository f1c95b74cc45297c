"""What follows from the server's facts: how long a job's cycle waits, and for what.

One cycle of a job is its GPU work on one chunk of data, and then what did not come in time: pages
that swap has to give back where the host's memory is short, and the rest of the next chunk where
its mount carries less than the job needs, or its processors decode less. Nothing of that is
declared in a scenario.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from telemetry.simulation.job import Checkpoint, Input, Job
from telemetry.simulation.reader import ScenarioError
from telemetry.simulation.server import Server, SimulatedMount

CYCLES_RESTART = 1800
"""Cycles begin anew at each half hour, so that few different windows exist."""

REQUEST_PERIOD = 60
"""Seconds over which requests are spread evenly."""


class Part(Enum):
    """What a job does in one second."""

    WORK = "work"
    QUIET = "quiet"  # no requests, or not at work at all
    SWAP = "swap"
    READ = "read"
    DECODE = "decode"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class Activity:
    """A job that is alive, at work or not; `level` is the share of its peak requests."""

    job: Job
    working: bool
    level: float = 1.0


@dataclass(frozen=True, slots=True)
class Cycle:
    """The seconds of one job: `parts` repeat; a checkpoint takes the first of every `every`.

    Rates are bytes per second while the part lasts: `read` what comes from the input's mount in
    READ, `ahead` what is read in WORK, `swap` what comes back in SWAP, `write` what is written
    in CHECKPOINT. `decode_threads` are kept busy in DECODE, `ahead_threads` in WORK.
    """

    parts: tuple[Part, ...]
    checkpoint_seconds: int = 0
    every: int = CYCLES_RESTART
    read: float = 0.0
    ahead: float = 0.0
    decode_threads: float = 0.0
    ahead_threads: float = 0.0
    swap: float = 0.0
    write: float = 0.0

    @property
    def period(self) -> int:
        """Seconds after which all repeats."""
        return self.every if self.checkpoint_seconds or len(self.parts) > 1 else 1

    def at(self, second: int) -> Part:
        """What the job does in that second."""
        inside = second % self.every
        if inside < self.checkpoint_seconds:
            return Part.CHECKPOINT
        return self.parts[(inside - self.checkpoint_seconds) % len(self.parts)]

    @property
    def busy_ratio(self) -> float:
        """Share of a cycle in which the GPU works, checkpoints apart."""
        return self.parts.count(Part.WORK) / len(self.parts)


def memory_needed(server: Server, activities: Sequence[Activity]) -> float:
    """Bytes of host memory that the system and every live job need."""
    return server.system_memory_bytes + sum(a.job.host_memory_bytes for a in activities)


def memory_short(server: Server, activities: Sequence[Activity]) -> float:
    """Bytes that do not fit. Raises ScenarioError where nothing could take them."""
    short = max(0.0, memory_needed(server, activities) - server.memory_bytes)
    if short and server.swap is None:
        raise ScenarioError(
            f"{server.host}: the jobs need {short:.0f} bytes of memory more than there are, and "
            "[server] names no swap: the kernel would kill them"
        )
    return short


def cycles(server: Server, activities: Sequence[Activity]) -> list[Cycle]:
    """The cycle of each activity while exactly these are alive."""
    short = memory_short(server, activities)
    needed = memory_needed(server, activities) - server.system_memory_bytes
    return [
        _cycle(server, activity, activities, short * activity.job.host_memory_bytes / needed)
        if activity.working
        else Cycle((Part.QUIET,))
        for activity in activities
    ]


def _cycle(
    server: Server, activity: Activity, activities: Sequence[Activity], short: float
) -> Cycle:
    job = activity.job
    if job.requests is not None:
        busy = round(REQUEST_PERIOD * job.requests.busy_ratio * activity.level)
        return Cycle(_spread(busy), every=REQUEST_PERIOD)
    compute = job.compute_seconds
    parts = [Part.WORK] * compute
    swap = _swap_share(server, activities)
    if short:
        # One pass over the run's memory brings back, at the least, what does not fit.
        bytes_per_cycle = short * compute / job.host_memory_pass_seconds
        parts += [Part.SWAP] * round(bytes_per_cycle / swap)
    read = ahead = decode_threads = ahead_threads = 0.0
    if job.input is not None:
        source = job.input
        read = _fair_rate(source, compute, activities)
        before = min(source.chunk_bytes * source.prefetch_ratio, read * compute)
        waits = round((source.chunk_bytes - before) / read)
        parts += [Part.READ] * waits
        ahead = (before if waits else source.chunk_bytes) / compute
        # A core decodes no more with two threads than with one; they only look busy.
        cores = min(source.workers, server.cpu.physical_cores or source.workers)
        seconds = source.decode_core_seconds / cores
        decode_threads = float(min(source.workers, server.threads))
        early = min(seconds * source.prefetch_ratio, compute)
        waits = round(seconds - early)
        parts += [Part.DECODE] * waits
        ahead_threads = (early if waits else seconds) * cores / compute
    if len(parts) == compute:
        parts = [Part.WORK]  # nothing to wait for: always at work
    saved = job.checkpoint
    return Cycle(
        tuple(parts),
        checkpoint_seconds=_checkpoint_seconds(saved) if saved is not None else 0,
        every=saved.every if saved is not None else CYCLES_RESTART,
        read=read,
        ahead=ahead,
        decode_threads=decode_threads,
        ahead_threads=ahead_threads,
        swap=swap if short else 0.0,
        write=_write_rate(saved) if saved is not None else 0.0,
    )


def _spread(busy: int) -> tuple[Part, ...]:
    """That many working seconds of a period, as evenly as whole seconds allow."""
    return tuple(
        Part.WORK if (i + 1) * busy // REQUEST_PERIOD > i * busy // REQUEST_PERIOD else Part.QUIET
        for i in range(REQUEST_PERIOD)
    )


def _fair_rate(source: Input, compute: int, activities: Sequence[Activity]) -> float:
    """What the job's mount gives it: what others leave, or a share by demand where it is full."""
    capacity = source.mount.capacity(source.read_size_bytes)
    own = source.chunk_bytes / compute
    total = sum(
        a.job.input.chunk_bytes / a.job.compute_seconds
        for a in activities
        if a.working and a.job.input is not None and _same_carrier(a.job.input.mount, source.mount)
    )
    return capacity - (total - own) if total <= capacity else capacity * own / total


def _same_carrier(one: SimulatedMount, other: SimulatedMount) -> bool:
    if one.disk is not None:
        return one.disk is other.disk
    return other.disk is None and one.nic == other.nic


def _swap_share(server: Server, activities: Sequence[Activity]) -> float:
    """What swap gives one of the jobs that are at work."""
    if server.swap is None:
        return 0.0
    working = sum(1 for a in activities if a.working and a.job.requests is None)
    return server.swap.drive.swap_bytes_per_second / max(1, working)


def _write_rate(saved: Checkpoint) -> float:
    return saved.size_bytes / _checkpoint_seconds(saved)


def _checkpoint_seconds(saved: Checkpoint) -> int:
    seconds = max(1, round(saved.size_bytes / saved.mount.write_capacity))
    return min(seconds, saved.every - 1)
