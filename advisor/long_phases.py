"""The phases of a long period: a month at a time, in several processes, with what phases need.

A year of eight GPUs is a million windows. Of each month only the columns are read that phases look
at; a month in which the host's own readings could matter (a training that waits, memory held and
nothing running) is read whole, as `observe` does.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.assessment import Period
from advisor.history import History
from advisor.labels import Labels, read_labels
from advisor.observe import observe
from advisor.phase import Phase, Segment
from advisor.phase_thresholds import PhaseThresholds
from advisor.phases import PhaseTeller
from advisor.processes import HostJobs
from telemetry.inventory import Inventory
from telemetry.states import TRAINS, Classifier, State
from telemetry.window import Frame

if TYPE_CHECKING:
    from advisor.commands.reading import Source

LONG_SECONDS = 62 * 86_400
"""From so long a period on it is told month by month."""

_MONTH = 30 * 86_400
_MOST_PROCESSES = 4
_NOT_WORK = frozenset({Phase.IDLE, Phase.UNKNOWN})
_FIELDS = (
    "covered_seconds",
    "utilization_ratio",
    "utilization_ratio_max",
    "utilization_ratio_zero_ratio",
    "utilization_ratio_busy_ratio",
    "sm_active_ratio",
    "sm_active_ratio_max",
    "power_watts",
    "power_watts_min",
    "power_watts_max",
    "power_limit_watts",
    "memory_used_bytes",
    "memory_used_bytes_min",
    "memory_used_bytes_max",
    "memory_total_bytes",
    "tensor_active_ratio",
    "tensor_active_ratio_max",
    "dram_active_ratio",
    "decoder_ratio",
    "encoder_ratio",
    "pcie_rx_bytes_per_second",
    "pcie_rx_bytes_per_second_max",
    "pcie_tx_bytes_per_second",
    "pcie_tx_bytes_per_second_max",
    "nvlink_rx_bytes_per_second",
    "nvlink_tx_bytes_per_second",
    "process_count",
    "process_memory_bytes",
    "job_read_bytes_per_second",
)


@dataclass(frozen=True, slots=True)
class _Asked:
    source: Source
    host: str
    period: Period
    inventory: Inventory


def long_segments(
    source: Source, history: History, host: str, period: Period
) -> tuple[Inventory, list[Segment]]:
    """The host at the end of a long period, and its GPUs' segments in order."""
    held = history.inventories(host, since=period.since, until=period.until)
    inventory = held[-1][1] if held else Inventory(host)
    cuts = [*range(period.since, period.until, _MONTH), period.until]
    asked = [
        _Asked(source, host, Period(since, until), inventory) for since, until in pairwise(cuts)
    ]
    workers = min(_MOST_PROCESSES, len(os.sched_getaffinity(0)), len(asked))
    context = multiprocessing.get_context("spawn")  # open databases do not survive a fork
    months: dict[str, list[list[Segment]]] = {}
    with ProcessPoolExecutor(workers, context, gc.disable) as pool:
        for number, month in enumerate(pool.map(_month, asked)):
            for uuid, segments in month.items():
                months.setdefault(uuid, [[] for _ in range(number)]).append(segments)
            for lists in months.values():
                lists.extend([] for _ in range(number + 1 - len(lists)))
    bridge = PhaseThresholds.load().bridge_seconds
    return inventory, [s for uuid in months for s in joined(months[uuid], bridge)]


def _month(asked: _Asked) -> dict[str, list[Segment]]:
    """What one month shows, from a history of its own."""
    source = asked.source
    labels = read_labels(Path(source.state)) if source.state else Labels()
    with source.opened() as history:
        lean = _lean(history, asked, labels)
        if lean is not None:
            return lean
        seen = observe(history, asked.host, asked.period, asked.inventory, labels)
        return {uuid: timeline.segments for uuid, timeline in seen.gpus.items()}


def _lean(history: History, asked: _Asked, labels: Labels) -> dict[str, list[Segment]] | None:
    """The segments without the host's readings; None where those could change a phase."""
    host, since, until = asked.host, asked.period.since, asked.period.until

    def read(measurement: str, fields: Sequence[str]) -> list[Frame]:
        return history.frames(
            host, measurement, since=since, until=until, fields=fields, texts=True
        )

    gpus = {frame.key[1]: frame for frame in read("gpu", _FIELDS)}
    for gpu in asked.inventory.gpus:
        if gpu.uuid not in gpus and not gpu.mig:
            gpus[gpu.uuid] = Frame(("gpu", gpu.uuid))
    known = {gpu.uuid: i for i, gpu in enumerate(asked.inventory.gpus)}
    ordered = sorted(gpus, key=lambda uuid: (known.get(uuid.split("/")[0], len(known)), uuid))
    processes = read("gpu_process", ())
    jobs = HostJobs(gpus.values(), processes, None)
    classifier = Classifier()
    teller = PhaseTeller(asked.inventory, {"engine": read("engine", ())}, labels)
    for uuid in ordered:
        frame = gpus[uuid]
        of_gpu = jobs.of(frame)
        engines = teller.engines_of(frame)
        if engines is not None and of_gpu.kinds is not None:
            kinds = [k or e for k, e in zip(of_gpu.kinds, engines, strict=True)]
            of_gpu = replace(of_gpu, kinds=kinds)
        states = classifier.classify(frame, None, of_gpu)
        for state, kind in zip(states, of_gpu.kinds or (), strict=False):
            if kind in TRAINS and state.state is State.IDLE_HELD:
                return None  # it may be starved: the host's readings tell
        teller.add(uuid, frame, states, jobs.processes[uuid])
    return teller.segments()


def joined(months: Sequence[Sequence[Segment]], bridge_seconds: float) -> list[Segment]:
    """One GPU's segments of several months in a row: what goes on over the end of a month is one
    segment, as if the months had been read together.
    """
    told: list[Segment] = []
    for month in months:
        for segment in month:
            before = _before(told, segment, bridge_seconds)
            if before is None:
                told.append(segment)
                continue
            whole = replace(segment, start=told[before].start)
            gap = told[before].end, segment.start
            told[before] = whole
            told = [s for s in told if not (s.phase in _NOT_WORK and _within(s, gap))]
    return sorted(told, key=lambda s: (s.start, s.end))


def _before(told: Sequence[Segment], segment: Segment, bridge_seconds: float) -> int | None:
    """The place of the segment that this one continues."""
    bridge = 0.0 if segment.phase in _NOT_WORK else bridge_seconds
    for place in range(len(told) - 1, max(-1, len(told) - 9), -1):
        other = told[place]
        if 0 <= segment.start - other.end <= bridge and _alike(other, segment):
            return place
    return None


def _alike(a: Segment, b: Segment) -> bool:
    return replace(a, start=0, end=0) == replace(b, start=0, end=0)


def _within(segment: Segment, gap: tuple[int, int]) -> bool:
    return gap[0] <= segment.start and segment.end <= gap[1]
