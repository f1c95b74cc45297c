"""The picture of the period: each GPU's states as a band, and its phases below."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest

from advisor.assessment import GpuHours, Period
from advisor.message import Message, say
from advisor.phase import Phase, Segment
from advisor.report import words
from advisor.report.band import HEIGHT, STACK, WIDTH, Area, Axis, areas, axis, utilization
from advisor.report.report import Server
from advisor.report.section import ServerSection
from telemetry.states import State


@dataclass(frozen=True, slots=True)
class PhasePart:
    """A stretch in one phase: where it begins and how long it is, as shares of the width."""

    place: float
    width: float
    label: Message
    known: bool


@dataclass(frozen=True, slots=True)
class Band:
    """One GPU. `hours` tell in words what the areas show; `utilization` is the path of a line."""

    index: int
    name: str
    uuid: str
    areas: tuple[Area, ...]
    utilization: str
    hours: tuple[tuple[Message, float], ...]
    phases: tuple[PhasePart, ...]


@dataclass(frozen=True, slots=True)
class Week:
    """The bands of all GPUs over one axis, and the states that are seen in them."""

    axis: Axis
    bands: tuple[Band, ...]
    legend: tuple[tuple[State, Message, Message], ...]
    width: float = WIDTH
    height: float = HEIGHT


def build(server: Server) -> Week | None:
    """The picture; no section where no GPU was observed in the told period."""
    seen = server.assessment.observations
    told = server.assessment.told
    if seen is None or not seen.gpus or told.until <= told.since:
        return None
    time = axis(told, server.zone)
    hours = {h.gpu_uuid: h for h in server.assessment.hours}
    bands = []
    for place, (uuid, timeline) in enumerate(seen.gpus.items()):
        if uuid not in hours:
            continue  # taken out before the period
        info = server.gpu(uuid)
        bands.append(
            Band(
                place if info is None or info.index is None else info.index,
                "" if info is None else info.name or "",
                uuid,
                areas(timeline, time),
                utilization(timeline, time),
                _hours(hours.get(uuid)),
                _phases(timeline.segments, told),
            )
        )
    bands.sort(key=lambda b: b.index)
    # GPUs that did the same share one line of phases, below the last of them.
    bands = [
        replace(band, phases=()) if after is not None and after.phases == band.phases else band
        for band, after in zip_longest(bands, bands[1:])
    ]
    drawn = {area.state for band in bands for area in band.areas}
    legend = tuple((s, words.STATES[s], words.MEANINGS[s]) for s in STACK if s in drawn)
    return Week(time, tuple(bands), legend)


def _hours(hours: GpuHours | None) -> tuple[tuple[Message, float], ...]:
    if hours is None:
        return ()
    return tuple(
        (words.STATES[s], h) for s in STACK if (h := hours.hours.get(s, 0.0)) >= words.SHOWN_HOURS
    )


def _phases(segments: list[Segment], told: Period) -> tuple[PhasePart, ...]:
    length = told.until - told.since
    parts = []
    for segment in segments:
        begin, end = max(segment.start, told.since), min(segment.end, told.until)
        if begin < end and segment.phase is not Phase.IDLE:
            parts.append(
                PhasePart(
                    (begin - told.since) / length,
                    (end - begin) / length,
                    words.PHASES[segment.phase],
                    segment.phase is not Phase.UNKNOWN,
                )
            )
    return tuple(parts)


SECTION = ServerSection("week", 20, say("The period, hour by hour"), build)
