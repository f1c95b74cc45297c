"""Each GPU in figures: its hours by state, its readings and its coverage."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.message import Amount, Message, say
from advisor.report import words
from advisor.report.readings import mean, quantile
from advisor.report.report import Server
from advisor.report.section import ServerSection


@dataclass(frozen=True, slots=True)
class Line:
    """One GPU over the told period; a reading that was never seen is None.

    `utilization` is the 95th percentile of the 5-minute means, `memory` the maximum, `power` the
    mean.
    """

    index: int
    name: str
    hours: tuple[float, ...]
    lost: float
    coverage: float
    utilization: Amount | None
    memory: Amount | None
    capacity: Amount | None
    power: Amount | None


@dataclass(frozen=True, slots=True)
class Gpus:
    """A line for each GPU, with a column for each state that any of them had."""

    states: tuple[Message, ...]
    lines: tuple[Line, ...]


def build(server: Server) -> Gpus | None:
    """The figures; no section for a server without GPUs."""
    assessment = server.assessment
    if not assessment.hours:
        return None
    states = [s for s in words.STATES if server.states.get(s, 0.0) >= words.SHOWN_HOURS]
    timelines = {} if assessment.observations is None else assessment.observations.gpus
    lines = []
    for place, hours in enumerate(assessment.hours):
        info = server.gpu(hours.gpu_uuid)
        timeline = timelines.get(hours.gpu_uuid)
        lines.append(
            Line(
                place if info is None or info.index is None else info.index,
                "" if info is None else info.name or "",
                tuple(hours.hours.get(s, 0.0) for s in states),
                hours.lost_hours,
                hours.coverage_ratio,
                quantile(timeline, assessment.told, "utilization_ratio", 0.95, "ratio"),
                quantile(timeline, assessment.told, "memory_used_bytes_max", 1.0, "bytes"),
                None
                if info is None or info.memory_bytes is None
                else Amount(float(info.memory_bytes), "bytes"),
                mean(timeline, assessment.told, "power_watts", "watts"),
            )
        )
    lines.sort(key=lambda line: line.index)
    return Gpus(tuple(words.STATES[s] for s in states), tuple(lines))


SECTION = ServerSection("gpus", 30, say("Each GPU in figures"), build)
