"""The server in one second: every row that an agent would read there and then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import lcm

from telemetry.simulation.cycle import Activity, Cycle, Part, cycles, memory_needed, memory_short
from telemetry.simulation.gpu_levels import gpu_row
from telemetry.simulation.job import kv_cache_bytes
from telemetry.simulation.scenario import Scenario
from telemetry.simulation.server import (
    COUNTED_PER_PAYLOAD,
    SimulatedDisk,
    SimulatedMount,
    SimulatedNic,
)
from telemetry.window import Key

Rows = dict[Key, dict[str, float]]

PAGE_BYTES = 4096
# Pages that one fault brings back from swap (vm.page-cluster = 3).
SWAP_CLUSTER = 8

# How much tasks wait, by what a job does: shares of a second (PSI), as when nearly all of a job's
# loaders stand still at once. Own choice, well on either side of the thresholds of signals.toml.
_PRESSURE: dict[Part, dict[str, float]] = {
    Part.SWAP: {"memory_some": 0.85, "memory_full": 0.55, "io_some": 0.60, "io_full": 0.40},
    Part.READ: {"io_some": 0.92, "io_full": 0.70},
    Part.CHECKPOINT: {"io_some": 0.30, "io_full": 0.10},
}
_BLOCKED = {Part.SWAP: 0.90, Part.READ: 0.90, Part.CHECKPOINT: 0.05}
_IOWAIT_CORES = {Part.SWAP: 8.0, Part.READ: 8.0, Part.CHECKPOINT: 1.0}
_QUIET_PRESSURE = {"memory_some": 0.0, "memory_full": 0.0, "io_some": 0.01, "io_full": 0.0}


@dataclass(slots=True)
class _Load:
    """Sums over jobs of what the host carries in one second."""

    cores: float = 1.0
    iowait_cores: float = 0.0
    wanted_cores: float = 1.0
    swap_in: float = 0.0
    pressure: dict[str, float] = field(default_factory=lambda: dict(_QUIET_PRESSURE))
    reads: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    writes: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    queued: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    read_sizes: dict[str, float] = field(default_factory=dict)

    def press(self, part: Part) -> None:
        for kind, level in _PRESSURE.get(part, {}).items():
            self.pressure[kind] = 1 - (1 - self.pressure[kind]) * (1 - level)


class Situation:
    """The server while the same jobs are alive, at the same level of requests."""

    def __init__(self, scenario: Scenario, activities: Sequence[Activity]) -> None:
        self._server = scenario.server
        self.activities = tuple(activities)
        self._cycles = cycles(scenario.server, self.activities)
        self._needed = memory_needed(scenario.server, self.activities)
        self._short = memory_short(scenario.server, self.activities)
        on_gpu: defaultdict[int, list[int]] = defaultdict(list)
        for number, activity in enumerate(self.activities):
            for index in activity.job.gpus:
                on_gpu[index].append(number)
        self._on_gpu = on_gpu

    @property
    def cycles(self) -> list[Cycle]:
        """The cycle of each activity."""
        return self._cycles

    @property
    def period(self) -> int:
        """Seconds after which every row repeats."""
        periods = [cycle.period for cycle in self._cycles]
        for activity in self.activities:
            for levels in (activity.job.working, activity.job.waiting):
                periods += [pattern.period for pattern in levels.values()]
        return lcm(1, *periods)

    def twins(self) -> dict[int, int]:
        """Each GPU's index, and that of the first GPU that behaves in the same way."""
        first: dict[tuple[object, ...], int] = {}
        return {
            gpu.index: first.setdefault((gpu.card, *self._on_gpu[gpu.index]), gpu.index)
            for gpu in self._server.gpus
        }

    def slots(self, index: int) -> list[tuple[int, int]]:
        """The processes of a GPU: (slot, number of the activity)."""
        numbers = self._on_gpu[index]
        return [(s, n) for s, n in enumerate(numbers) if self.activities[n].job.visible]

    def rows(self, second: int, gpus: Iterable[int]) -> Rows:
        """The rows of that second, with those of the GPUs asked for."""
        server = self._server
        parts = [cycle.at(second) for cycle in self._cycles]
        load = self._load(parts)
        rows: Rows = {("host",): self._host(load)}
        for disk in server.disks.values():
            rows["disk", disk.name] = self._disk(disk, load)
        for mount in server.mounts.values():
            rows["mount", mount.path] = _mount(mount, load)
        for nic in server.nics.values():
            if nic.state == "up":
                rows["nic", nic.name] = self._nic(nic, load)
        for number, part in enumerate(parts):
            self._engine(rows, number, part)
        for index in gpus:
            self._gpu(rows, index, second, parts)
        return rows

    def _load(self, parts: Sequence[Part]) -> _Load:
        load = _Load()
        for activity, cycle, part in zip(self.activities, self._cycles, parts, strict=True):
            job = activity.job
            load.press(part)
            load.iowait_cores += _IOWAIT_CORES.get(part, 0.0)
            if part is Part.WORK:
                load.cores += job.cpu_cores + cycle.ahead_threads
                load.wanted_cores += job.cpu_cores + cycle.ahead_threads
            elif part is Part.DECODE:
                assert job.input is not None
                load.cores += cycle.decode_threads
                load.wanted_cores += job.input.workers
            if part is Part.SWAP:
                load.swap_in += cycle.swap
            if job.input is not None and part in (Part.WORK, Part.READ):
                path = job.input.mount.path
                load.reads[path] += cycle.read if part is Part.READ else cycle.ahead
                load.read_sizes[path] = job.input.read_size_bytes
                if part is Part.READ:
                    load.queued[path] += job.input.workers
            if job.checkpoint is not None and part is Part.CHECKPOINT:
                load.writes[job.checkpoint.mount.path] += cycle.write
        return load

    def _host(self, load: _Load) -> dict[str, float]:
        server = self._server
        threads = server.threads
        full = load.wanted_cores / (server.cpu.physical_cores or threads)
        busy = 1.0 if full >= 1 else load.cores / threads
        cpu_some = 0.7 if full > 1.2 else 0.25 if full >= 1 else 0.02
        used = server.memory_bytes * 0.985 if self._short else self._needed
        return {
            "cpu_busy_ratio": busy,
            "cpu_iowait_ratio": min(1 - busy, load.iowait_cores / threads),
            "load_1m": load.wanted_cores + load.iowait_cores,
            "memory_total_bytes": float(server.memory_bytes),
            "memory_used_bytes": min(used, float(server.memory_bytes)),
            "swap_used_bytes": self._short,
            "swap_in_bytes_per_second": load.swap_in,
            "major_faults_per_second": load.swap_in / (PAGE_BYTES * SWAP_CLUSTER),
            "pressure_cpu_some_ratio": cpu_some,
            **{f"pressure_{kind}_ratio": level for kind, level in load.pressure.items()},
        }

    def _disk(self, disk: SimulatedDisk, load: _Load) -> dict[str, float]:
        drive = disk.drive
        mounts = [m for m in self._server.mounts.values() if m.disk is disk]
        read = sum(load.reads[m.path] for m in mounts)
        write = sum(load.writes[m.path] for m in mounts)
        size = min((load.read_sizes.get(m.path, 2.0**17) for m in mounts), default=2.0**17)
        limit = drive.capacity(size)
        queue = sum(load.queued[m.path] for m in mounts)
        if disk is self._server.swap and load.swap_in:
            read += load.swap_in
            size = float(PAGE_BYTES * SWAP_CLUSTER)
            limit = drive.swap_bytes_per_second * 4  # a few faulting tasks leave a drive room
        full = read >= 0.9 * limit
        # A full drive makes requests wait for those before them (Little's law).
        await_seconds = (
            max(drive.latency_seconds, queue * size / limit) if full else (drive.latency_seconds)
        )
        busy = min(1.0, read / limit + write / drive.write_bytes_per_second)
        return {
            "read_bytes_per_second": read,
            "write_bytes_per_second": write,
            "reads_per_second": read / size,
            "read_await_seconds": await_seconds,
            "write_await_seconds": drive.latency_seconds * (1 + 20 * (write > 0)),
            "queue_depth": max(queue if full else 0.0, await_seconds * read / size),
            "busy_ratio": busy,
        }

    def _nic(self, nic: SimulatedNic, load: _Load) -> dict[str, float]:
        mounts = [m for m in self._server.mounts.values() if m.nic == nic]
        # Names, time and logs: a few kilobytes a second on every link.
        rx = 20e3 + sum(load.reads[m.path] for m in mounts) * COUNTED_PER_PAYLOAD
        tx = 20e3 + sum(load.writes[m.path] for m in mounts) * COUNTED_PER_PAYLOAD
        link = nic.speed_bits_per_second / 8
        return {
            "rx_bytes_per_second": rx,
            "tx_bytes_per_second": tx,
            "speed_bits_per_second": float(nic.speed_bits_per_second),
            "rx_link_ratio": min(1.0, rx / link),
            "tx_link_ratio": min(1.0, tx / link),
        }

    def _engine(self, rows: Rows, number: int, part: Part) -> None:
        activity = self.activities[number]
        engine = activity.job.engine
        if engine is None:
            return
        cards = [self._server.gpus[i].card.memory_bytes for i in activity.job.gpus]
        pool = kv_cache_bytes(engine, cards)
        one = engine.kv_bytes_per_token * engine.tokens_per_request
        serving = 1.0 if part is Part.WORK else 0.0
        asked = round(engine.requests_at_peak * activity.level) * serving
        running = min(asked, pool // one)
        share = activity.level * serving
        rows["engine", str(engine.port)] = {
            "kv_cache_usage_ratio": running * one / pool,
            "kv_cache_bytes": pool,
            "requests_running": running,
            "requests_waiting": asked - running,
            "preemptions_total": 0.0,
            "prompt_tokens_per_second": engine.prompt_tokens_per_second * share,
            "generation_tokens_per_second": engine.generation_tokens_per_second * share,
        }

    def _gpu(self, rows: Rows, index: int, second: int, parts: Sequence[Part]) -> None:
        gpu = self._server.gpus[index]
        numbers = self._on_gpu[index]
        jobs = [self.activities[n].job for n in numbers]
        works = [parts[n] is Part.WORK for n in numbers]
        row = gpu_row(gpu.card, jobs, works, second)
        if any(job.visible for job in jobs):
            row["job_blocked_ratio"] = max(_BLOCKED.get(parts[n], 0.0) for n in numbers)
            row["job_read_bytes_per_second"] = sum(self._job_read(n, parts[n]) for n in numbers)
            row["job_write_bytes_per_second"] = sum(self._job_write(n, parts[n]) for n in numbers)
        rows["gpu", gpu.uuid] = row
        for slot, number in self.slots(index):
            job = self.activities[number].job
            share = 1 / len(job.gpus)
            levels = job.working if parts[number] is Part.WORK else job.waiting
            rows["gpu_process", gpu.uuid, str(slot)] = {
                "memory_bytes": float(job.gpu_memory_bytes),
                "sm_ratio": levels["utilization_ratio"].at(second),
                "cpu_cores": self._job_cores(number, parts[number]) * share,
                "host_memory_bytes": job.host_memory_bytes * share,
                "read_bytes_per_second": self._job_read(number, parts[number]),
                "write_bytes_per_second": self._job_write(number, parts[number]),
            }

    def _job_cores(self, number: int, part: Part) -> float:
        cycle = self._cycles[number]
        if part is Part.WORK:
            return self.activities[number].job.cpu_cores + cycle.ahead_threads
        return cycle.decode_threads if part is Part.DECODE else 0.1

    def _job_read(self, number: int, part: Part) -> float:
        """Bytes that the job had read for one of its GPUs."""
        cycle, gpus = self._cycles[number], len(self.activities[number].job.gpus)
        rate = {Part.WORK: cycle.ahead, Part.READ: cycle.read}.get(part, 0.0)
        return rate / gpus

    def _job_write(self, number: int, part: Part) -> float:
        cycle, gpus = self._cycles[number], len(self.activities[number].job.gpus)
        return cycle.write / gpus if part is Part.CHECKPOINT else 0.0


def _mount(mount: SimulatedMount, load: _Load) -> dict[str, float]:
    row = {"size_bytes": float(mount.size_bytes), "used_bytes": float(mount.used_bytes)}
    if not mount.remote:
        return row
    read, write = load.reads[mount.path], load.writes[mount.path]
    size = load.read_sizes.get(mount.path, 2.0**20)
    limit = mount.capacity(size)
    round_trip = mount.round_trip_seconds
    if read >= 0.9 * limit:
        # The link's queue: each worker's request waits for those of all others (Little's law).
        round_trip = max(round_trip, load.queued[mount.path] * min(size, 2.0**20) / limit)
    return row | {
        "read_bytes_per_second": read,
        "write_bytes_per_second": write,
        "read_round_trip_seconds": round_trip,
        "read_queue_seconds": 0.2 * round_trip,
        "retransmits_per_second": 0.0,
    }
