"""From history to observations: frames, states, segments and coverage of one server."""

from __future__ import annotations

from dataclasses import replace

from advisor.assessment import GpuTimeline, Observations, Period
from advisor.history import History
from advisor.labels import NO_LABELS, Labels
from advisor.phases import PhaseTeller
from advisor.processes import HostJobs
from telemetry.inventory import Inventory
from telemetry.metrics import COVERED_SECONDS, FAMILIES, GPU
from telemetry.states import FIELDS, Classifier, Surroundings
from telemetry.window import Frame

_MORE_GPU_FIELDS = (
    "memory_utilization_ratio",
    "power_watts_min",
    "tensor_active_ratio",
    "dram_active_ratio",
    "dram_active_ratio_max",
    "decoder_ratio",
    "encoder_ratio",
    "temperature_celsius_max",
    "energy_joules_total",
)
GPU_FIELDS: tuple[str, ...] = tuple(
    name for name in GPU.fields() if name in {*FIELDS, *_MORE_GPU_FIELDS}
)
"""What is read of a GPU: all that states, phases and sizing look at."""

_UNREAD = frozenset({"gpu", "agent"})


def observe(
    history: History,
    host: str,
    period: Period,
    inventory: Inventory | None = None,
    labels: Labels = NO_LABELS,
) -> Observations:
    """What was seen of one host over a period, with the state of each window and the phases.

    `inventory` is what the server was at the end of it, where that was read before; `labels` is
    what people said of windows. GPUs of the inventory that have no windows are there with an empty
    frame: their time is unknown.
    """
    since, until = period.since, period.until
    if inventory is None:
        held = history.inventories(host, since=since, until=until)
        inventory = held[-1][1] if held else Inventory(host)
    frames = {
        family.measurement: history.frames(
            host, family.measurement, since=since, until=until, fields=family.fields(), texts=True
        )
        for family in FAMILIES
        if family.measurement not in _UNREAD
    }
    gpus = {
        frame.key[1]: frame
        for frame in history.frames(
            host, "gpu", since=since, until=until, fields=GPU_FIELDS, texts=True
        )
    }
    for gpu in inventory.gpus:
        if gpu.uuid not in gpus and not gpu.mig:
            gpus[gpu.uuid] = Frame(("gpu", gpu.uuid))
    # In the order that people know, then those that the inventory no longer has.
    known = {gpu.uuid: i for i, gpu in enumerate(inventory.gpus)}
    ordered = sorted(gpus, key=lambda uuid: (known.get(uuid.split("/")[0], len(known)), uuid))
    gpus = {uuid: gpus[uuid] for uuid in ordered}
    timelines = _timelines(inventory, gpus, frames, labels)
    covered = _covered_seconds(gpus, frames)
    length = max(1, until - since)
    return Observations(
        host=host,
        period=period,
        inventory=inventory,
        gpus=timelines,
        frames=frames,
        coverage_ratio=min(1.0, covered / length),
        covered_hours=covered / 3600,
        owner_days=tuple(history.owner_days(host, since=since, until=until)),
    )


def _timelines(
    inventory: Inventory, gpus: dict[str, Frame], frames: dict[str, list[Frame]], labels: Labels
) -> dict[str, GpuTimeline]:
    host = frames["host"][0] if frames["host"] else None
    around = Surroundings(host, tuple(frames["disk"]), tuple(frames["mount"]), tuple(frames["nic"]))
    threads = inventory.cpu.threads if inventory.cpu is not None else None
    host_jobs = HostJobs(gpus.values(), frames["gpu_process"], threads)
    classifier, teller = Classifier(), PhaseTeller(inventory, frames, labels)
    timelines: dict[str, GpuTimeline] = {}
    for uuid, frame in gpus.items():
        jobs = host_jobs.of(frame)
        engines = teller.engines_of(frame)
        if engines is not None and jobs.kinds is not None:
            kinds = [k or e for k, e in zip(jobs.kinds, engines, strict=True)]
            jobs = replace(jobs, kinds=kinds)
        states = classifier.classify(frame, around, jobs)
        timelines[uuid] = GpuTimeline(frame, states, [])
        teller.add(uuid, frame, states, host_jobs.processes[uuid])
    for uuid, segments in teller.segments().items():
        timelines[uuid].segments = segments
    return timelines


def _covered_seconds(gpus: dict[str, Frame], frames: dict[str, list[Frame]]) -> float:
    """Mean over the GPUs; the host's own where there is no GPU."""
    subjects = list(gpus.values()) or frames["host"][:1]
    if not subjects:
        return 0.0
    return sum(_covered(frame) for frame in subjects) / len(subjects)


def _covered(frame: Frame) -> float:
    column = frame.columns.get(COVERED_SECONDS)
    if column is None:
        return float(sum(frame.seconds))
    return sum(
        min(float(seconds), covered)
        for seconds, covered in zip(frame.seconds, column, strict=True)
        if covered is not None
    )
