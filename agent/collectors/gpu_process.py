"""The processes on each GPU, and what they and their workers wait for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from agent.collectors.collector import Sources
from agent.host.cgroups import Cgroups
from agent.host.data_files import DataFiles
from agent.host.owners import Owners
from agent.host.processes import Activity, Life, Sight, Tree
from agent.identity import Identities
from telemetry.inventory import Limits
from telemetry.window import Key, Sample

SLOTS = 16
"""Processes of one GPU that have a row; more are counted only."""
_KEPT = 16
"""Processes whose files stay open: all of a usual server's, within the usual 1,024 descriptors."""
_MOST_LIMITS = 16
_EARLY = 0.25
"""A tick may come this much before it is due."""
_IO_METRICS = ("read_bytes_per_second", "write_bytes_per_second")
_RATES = ("cpu_cores", *_IO_METRICS, "read_calls_per_second", "write_calls_per_second")
_IO_ADVICE = (
    "{}: reading the I/O of other users' processes needs CAP_SYS_PTRACE"
    " (a systemd drop-in with AmbientCapabilities=CAP_SYS_PTRACE)"
)


@dataclass(slots=True)
class _Listed:
    """A process as the driver lists it on one GPU."""

    memory_bytes: int | None = None
    sm_ratio: float | None = None


@dataclass(slots=True)
class _Seen:
    """A process as /proc shows it."""

    life: Life
    activity: Activity | None = None


@dataclass(slots=True)
class _Gpu:
    """The last reading of one GPU's processes; `level` and `levels` stay true between readings."""

    slots: dict[int, int] = field(default_factory=dict)
    """Slot by pid."""
    level: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    levels: dict[Key, dict[str, float]] = field(default_factory=dict)
    moving: dict[Key, dict[str, float]] = field(default_factory=dict)
    texts: dict[Key, dict[str, str]] = field(default_factory=dict)


class GpuProcessCollector:
    """Every 5 s, for the processes that the driver lists, and for nobody else.

    The second reading follows the first at once, so that there are rates from the second tick on.

    The processor time and I/O of a row are those of the process and of its workers that are on no
    GPU (dataloaders). What a GPU's job reads, writes and waits for is on the second of the reading
    alone, so that its shares are counted against that second's gaps; counts and memory, which are
    levels, are told for each second until the next reading.
    """

    name = "gpu_process"
    every = 5.0
    read_at: float | None = None

    def __init__(self, sources: Sources) -> None:
        self._hostfs = sources.hostfs
        self._nvml = sources.nvml
        self._sight = Sight(sources.hostfs)
        self._identities = Identities(sources.hostfs, Owners(sources.hostfs))
        self.cgroups = Cgroups(sources.hostfs)
        self.job_limits: set[Limits] = set()
        """The limits under which processes were seen to run, since the agent began."""
        self._trees: dict[int, Tree] = {}
        self._gpus: dict[str, _Gpu] = {}
        self.data_files = DataFiles(sources.hostfs)
        self.opened: frozenset[str] | None = None
        """`major:minor` of the file systems that jobs have files open on; None where unknown."""
        self._due = -math.inf
        self._readings = 0
        self._reasons: dict[str, str] = {}
        self.errors_total = 0

    def collect(self, now: float, sample: Sample) -> None:
        if self._nvml is None:
            return
        uuids = [key[1] for key in sample.rows if key[0] == "gpu"]
        fresh = now >= self._due - _EARLY
        if fresh:
            self._due = now + (self.every if self._readings else 0.0)
            self._readings += 1
            self._read(now, uuids)
            if uuids:
                self.read_at = now
        for uuid in uuids:
            gpu = self._gpus.get(uuid)
            if gpu is None:
                continue
            row = sample.rows[("gpu", uuid)]
            row.update(gpu.level)
            if not fresh:
                sample.rows.update(gpu.levels)  # nobody adds to these
                continue
            row.update(gpu.rates)
            for key, levels in gpu.levels.items():
                sample.rows[key] = levels | gpu.moving[key]
            for key, texts in gpu.texts.items():
                sample.texts[key] = dict(texts)

    def unavailable(self) -> dict[str, str]:
        return {**self._identities.reasons, **self._reasons}

    def _read(self, now: float, uuids: list[str]) -> None:
        assert self._nvml is not None
        self._reasons = {}
        listed: dict[str, dict[int, _Listed]] = {uuid: {} for uuid in uuids}
        for process in self._nvml.processes():
            # A process that computes and draws is listed twice, with the same memory.
            entry = listed.setdefault(process.gpu_uuid, {}).setdefault(process.pid, _Listed())
            if process.memory_bytes is not None:
                entry.memory_bytes = max(process.memory_bytes, entry.memory_bytes or 0)
            if process.sm_ratio is not None:
                entry.sm_ratio = process.sm_ratio
        on_gpus = frozenset(pid for processes in listed.values() for pid in processes)
        refused = self._nvml.unavailable_processes()
        before = self._gpus
        self._gpus = {u: _Gpu(slots=_assign(before.get(u), listed[u])) for u in uuids}
        shown = {pid for gpu in self._gpus.values() for pid in gpu.slots}
        seen = {pid: self._look(pid, now, on_gpus, pid in shown) for pid in on_gpus}
        for uuid, gpu in self._gpus.items():
            reason = refused.get(uuid, {}).get("compute")
            if reason is not None:
                self._reasons[f"gpu {uuid} process_count"] = reason
            else:
                self._sum_up(uuid, gpu, listed[uuid], seen)
            self._show(uuid, gpu, listed[uuid], seen, now)
        self._trees = {pid: tree for pid, tree in self._trees.items() if pid in on_gpus}
        self._identities.forget(on_gpus)
        self.cgroups.forget(frozenset(map(self._identities.cgroup, shown)))
        self.data_files.forget(on_gpus)
        hidden = any(shown.life is Life.HIDDEN for shown in seen.values())
        self.opened = None if hidden else self.data_files.numbers()

    def _look(self, pid: int, now: float, on_gpus: frozenset[int], whole: bool) -> _Seen:
        """How a process is; without `whole` only whether it lives."""
        if not self._sight.initial:
            # The driver lists the machine's pids: the same number here is another process.
            return _Seen(Life.HIDDEN)
        keep = whole and len(self._trees) < _KEPT
        tree = self._trees.get(pid) or Tree(self._hostfs, pid, keep=keep)
        try:
            activity = tree.read(now, on_gpus) if whole else Activity(tree.stat(), 0.0, 0)
        except (FileNotFoundError, ProcessLookupError):
            return _Seen(self._sight.absent())
        except PermissionError:
            return _Seen(Life.HIDDEN)
        except (OSError, ValueError, IndexError) as error:
            self.errors_total += 1
            self._reasons["gpu_process"] = f"/proc/{pid}: {error}"
            return _Seen(Life.HIDDEN)
        if activity.stat.dead:
            return _Seen(Life.ZOMBIE, activity)
        if whole:
            self._trees[pid] = tree
            self._look_at_files(pid, activity, tree, now)
        if tree.io_reason is not None:
            reason = _IO_ADVICE.format(tree.io_reason)
            for metric in _IO_METRICS:
                self._reasons[f"gpu_process {metric}"] = reason
        if tree.workers_reason is not None:
            self._reasons["gpu_process workers"] = tree.workers_reason
        return _Seen(Life.RUNNING, activity)

    def _look_at_files(self, pid: int, activity: Activity, tree: Tree, now: float) -> None:
        try:
            self.data_files.look(pid, activity.stat.started, tree.workers, now)
        except OSError as error:
            reason = f"process {pid}: {error.strerror}"
            self._reasons["mount job_open_ratio"] = _IO_ADVICE.format(reason)

    def _sum_up(
        self, uuid: str, gpu: _Gpu, listed: dict[int, _Listed], seen: dict[int, _Seen]
    ) -> None:
        """The GPU's own row."""
        lives = {pid: seen[pid].life for pid in listed}
        if Life.HIDDEN in lives.values() or not self._sight.initial:
            # Whether these live cannot be told; and within a container the list may be empty
            # while the GPU is in use.
            self._reasons[f"gpu {uuid} process_count"] = self._sight.reason()
        else:
            gpu.level["process_count"] = float(
                sum(1 for life in lives.values() if life is Life.RUNNING)
            )
        held = [
            listed[pid].memory_bytes
            for pid, life in lives.items()
            if life in (Life.RUNNING, Life.HIDDEN)
        ]
        known = [memory for memory in held if memory is not None]
        if len(known) < len(held):
            self._reasons[f"gpu {uuid} process_memory_bytes"] = "the driver does not tell it"
        elif known or "process_count" in gpu.level:
            gpu.level["process_memory_bytes"] = float(sum(known))
        if Life.HIDDEN in lives.values():
            return
        activities = [a for pid in gpu.slots if (a := _running(seen[pid])) is not None]
        if activities:
            looked_at = sum(a.looked_at for a in activities)
            gpu.rates["job_blocked_ratio"] = sum(a.waiting for a in activities) / looked_at
            workers = sum(a.workers for a in activities)
            if workers:
                gpu.rates["job_computing_ratio"] = sum(a.computing for a in activities) / workers
            for metric in _IO_METRICS:
                rates = [getattr(a, metric) for a in activities]
                if None not in rates:
                    gpu.rates[f"job_{metric}"] = sum(rates)
                elif f"gpu_process {metric}" in self._reasons:
                    why = self._reasons[f"gpu_process {metric}"]
                    self._reasons[f"gpu {uuid} job_{metric}"] = why

    def _show(
        self,
        uuid: str,
        gpu: _Gpu,
        listed: dict[int, _Listed],
        seen: dict[int, _Seen],
        now: float,
    ) -> None:
        """The rows of the processes that have a slot."""
        if len(listed) > SLOTS:
            self._reasons[f"gpu_process {uuid}"] = (
                f"{len(listed)} processes are on the GPU, {SLOTS} are shown"
            )
        for pid, slot in gpu.slots.items():
            key: Key = ("gpu_process", uuid, str(slot))
            entry, shown = listed[pid], seen[pid]
            levels = gpu.levels[key] = {}
            moving = gpu.moving[key] = {}
            if entry.memory_bytes is not None:
                levels["memory_bytes"] = float(entry.memory_bytes)
            if entry.sm_ratio is not None:
                moving["sm_ratio"] = entry.sm_ratio
            activity = _running(shown)
            if activity is not None:
                levels["host_memory_bytes"] = float(activity.stat.resident_bytes)
                for metric in _RATES:
                    value = getattr(activity, metric)
                    if value is not None:
                        moving[metric] = value
            if shown.activity is not None:
                texts = self._identities.texts(pid, shown.activity.stat, now)
            else:
                texts = self._identities.last(pid)
            weights = self._identities.weights_bytes(pid)
            if weights is not None:
                levels["weights_bytes"] = float(weights)
            if activity is not None:
                self._add_cgroup(pid, levels, moving, now)
            gpu.texts[key] = {**texts, "pid": str(pid), "state": shown.life.value}

    def _add_cgroup(
        self, pid: int, levels: dict[str, float], moving: dict[str, float], now: float
    ) -> None:
        """What the process's cgroup allows it, and what the cgroup's tasks wait for."""
        cgroup = self._identities.cgroup(pid)
        if not cgroup:
            return
        limits = self.cgroups.limits(cgroup, now)
        if limits != Limits() and len(self.job_limits) < _MOST_LIMITS:
            kind = self._identities.last(pid).get("owner_kind")
            self.job_limits.add(replace(limits, owner_kind=kind))
        cores = [n for n in (limits.cpu_cores, limits.cpuset_threads) if n is not None]
        if cores:
            levels["cpu_limit_cores"] = float(min(cores))
        if limits.memory_max_bytes is not None:
            levels["memory_limit_bytes"] = float(limits.memory_max_bytes)
        if limits.memory_high_bytes is not None:
            levels["memory_high_bytes"] = float(limits.memory_high_bytes)
        for name, share in self.cgroups.pressure(cgroup, now).items():
            moving[f"pressure_{name}_ratio"] = share
        reason = self.cgroups.reason(cgroup)
        if reason is not None:
            self._reasons["gpu_process pressure"] = reason


def _running(seen: _Seen) -> Activity | None:
    return seen.activity if seen.life is Life.RUNNING else None


def _assign(before: _Gpu | None, listed: dict[int, _Listed]) -> dict[int, int]:
    """Slots by pid: who had one keeps it, newcomers get the lowest free, the largest first."""
    slots = {p: s for p, s in before.slots.items() if p in listed} if before is not None else {}
    free = [slot for slot in range(SLOTS) if slot not in slots.values()]
    newcomers = sorted(
        (pid for pid in listed if pid not in slots),
        key=lambda pid: (-(listed[pid].memory_bytes or 0), pid),
    )
    slots.update(zip(newcomers, free, strict=False))
    return slots
