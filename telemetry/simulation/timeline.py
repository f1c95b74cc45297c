"""Which jobs are there at a time, at what level, under which process ids."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

from telemetry.simulation.cycle import Activity
from telemetry.simulation.job import Job, Requests
from telemetry.simulation.moment import Situation
from telemetry.simulation.scenario import Scenario
from telemetry.simulation.schedule import DAY, STEP
from telemetry.window import Key
from telemetry.workload import Signatures

# Levels of requests are told in steps of this, so that few different windows exist.
_LEVEL_STEPS = 40

Texts = dict[Key, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Present:
    """A time's situation, and the texts of every row in it."""

    situation: Situation
    texts: Texts


class Timeline:
    """The work of a scenario from `origin` (Unix time) on, constant within five minutes."""

    def __init__(self, scenario: Scenario, origin: int) -> None:
        self._scenario = scenario
        self._origin = origin
        self._signatures = Signatures.load()
        self._situations: dict[tuple[tuple[str, bool, float], ...], Situation] = {}
        self._texts: dict[tuple[tuple[str, int], ...], Texts] = {}

    def at(self, time: int) -> Present:
        """What is there in the five minutes that hold `time`."""
        time -= time % STEP
        activities: list[Activity] = []
        runs: list[tuple[str, int]] = []
        for job in self._scenario.jobs:
            run = job.alive.run(time, self._origin)
            if run is None:
                continue
            level = _level(job.requests, time) if job.requests is not None else 1.0
            working = job.works.run(time, self._origin) is not None
            activities.append(Activity(job, working, level))
            runs.append((job.name, run))
        key = tuple((a.job.name, a.working, a.level) for a in activities)
        situation = self._situations.get(key)
        if situation is None:
            situation = self._situations[key] = Situation(self._scenario, activities)
        texts = self._texts.get(tuple(runs))
        if texts is None:
            texts = self._texts[tuple(runs)] = self._describe(situation, dict(runs))
        return Present(situation, texts)

    def _describe(self, situation: Situation, runs: dict[str, int]) -> Texts:
        server = self._scenario.server
        texts: Texts = {("disk", d.name): {"kind": d.kind} for d in server.disks.values()}
        for nic in server.nics.values():
            texts["nic", nic.name] = {"kind": nic.kind, "state": nic.state}
        for mount in server.mounts.values():
            texts["mount", mount.path] = {"fstype": mount.fstype, "source": mount.source}
            if mount.disk is not None:
                texts["mount", mount.path]["device"] = mount.disk.name
        for activity in situation.activities:
            engine = activity.job.engine
            if engine is not None:
                texts["engine", str(engine.port)] = {
                    "engine": engine.name,
                    "engine_version": engine.version,
                    "model": engine.model,
                    "gpu_uuids": ",".join(server.gpus[i].uuid for i in activity.job.gpus),
                }
        for gpu in server.gpus:
            texts["gpu", gpu.uuid] = {"gpu_model": gpu.card.name, "memory_api": "v2"}
            for slot, number in situation.slots(gpu.index):
                job = situation.activities[number].job
                texts["gpu_process", gpu.uuid, str(slot)] = {
                    "pid": str(process_id(job, runs[job.name], gpu.index)),
                    **process_texts(job, self._signatures),
                }
        return texts


def process_id(job: Job, run: int, gpu: int) -> int:
    """The id of the job's process on a GPU: the same throughout a run, another in the next."""
    return 2000 + crc32(f"{job.name}:{run}".encode()) % 4_000_000 + job.gpus.index(gpu)


def process_texts(job: Job, signatures: Signatures) -> dict[str, str]:
    """What an agent says of each of the job's processes, but for its id."""
    texts = {
        "name": job.process_name,
        "command": job.command,
        "user": job.user,
        "owner": job.owner,
        "owner_kind": job.owner_kind,
        "state": "running",
    }
    match = signatures.match(job.command)
    if match is not None:
        texts |= {"workload": match.kind.value, "tool": match.tool}
        if match.model is not None:
            texts |= {"model": match.model, "model_source": "command"}
    return texts


def _level(requests: Requests, time: int) -> float:
    """The share of the peak at a time: straight lines between the hours' levels, in steps."""
    day, second = divmod(time, DAY)
    hour, inside = divmod(second, 3600)
    here, next_one = requests.daily[hour], requests.daily[(hour + 1) % 24]
    level = here + (next_one - here) * inside / 3600
    if (day + 3) % 7 >= 5:  # 1 January 1970 was a Thursday
        level *= requests.weekend_ratio
    return round(level * _LEVEL_STEPS) / _LEVEL_STEPS
