"""The state band: what a GPU did over a period, as stacked columns of time.

A column is a stretch of time; the heights within it are the shares of that time which each state
had, so that nothing short is lost to a majority. Drawn as one SVG path a state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from advisor.assessment import GpuTimeline, Period
from telemetry.states import State

WIDTH = 1000.0
HEIGHT = 24.0
_COLUMNS = 168  # an hour each over a week
_WINDOW_SECONDS = 300
_DAY = 86_400
_TICKS = 8

STACK = (
    State.BUSY,
    State.STARVED,
    State.STUCK,
    State.ORPHAN_HELD,
    State.IDLE_HELD,
    State.IDLE_FREE,
    State.UNKNOWN,
)
"""From the bottom of a column upwards; what no window covers is unknown."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of the time axis: its place as a share of the width, and its time."""

    place: float
    time: int


@dataclass(frozen=True, slots=True)
class Axis:
    """The time axis of a band. `days` tells whether the marks are days, else hours."""

    period: Period
    step: int
    ticks: tuple[Tick, ...]
    days: bool


def axis(period: Period, zone: tzinfo = UTC) -> Axis:
    """An axis with at most eight marks, at the zone's midnights or at whole hours of it."""
    length = period.until - period.since
    step = _WINDOW_SECONDS * max(1, -(-length // (_COLUMNS * _WINDOW_SECONDS)))
    days = length > 2 * _DAY
    choices = (_DAY * n for n in (1, 2, 4, 7, 14, 28, 56)) if days else _hours()
    between = next((c for c in choices if length / c <= _TICKS), length)
    ticks = tuple(
        Tick((time - period.since) / length, time)
        for time in _marks(period, between, zone)
        if (time - period.since) / length < 0.97
    )
    return Axis(period, step, ticks, days)


def _marks(period: Period, between: int, zone: tzinfo) -> Iterator[int]:
    """Whole multiples of a length by the zone's clock, where it is moved for summer too."""
    offset = datetime.fromtimestamp(period.since, zone).utcoffset() or timedelta()
    shift = int(offset.total_seconds())
    first = -(-(period.since + shift) // between) * between
    for local in range(first, period.until + 2 * _DAY, between):
        moment = datetime.fromtimestamp(local, UTC).replace(tzinfo=zone)
        time = int(moment.timestamp())
        if period.since <= time < period.until:
            yield time


def _hours() -> Iterator[int]:
    return (60 * n for n in (5, 10, 15, 30, 60, 120, 180, 360, 720))


@dataclass(frozen=True, slots=True)
class Area:
    """The part of a band that one state fills, as an SVG path."""

    state: State
    path: str


def areas(timeline: GpuTimeline, axis: Axis) -> tuple[Area, ...]:
    """The areas of a GPU over the axis's period, in a box of WIDTH by HEIGHT."""
    columns = shares(timeline, axis)
    paths: dict[State, list[str]] = {state: [] for state in STACK}
    width = WIDTH * axis.step / (axis.period.until - axis.period.since)
    for begin, end, column in _runs(columns):
        left, right = begin * width, min(end * width, WIDTH)
        below = 0.0
        for state in STACK:
            share = column.get(state, 0.0)
            if share > 0:
                top = HEIGHT * (1 - below - share)
                tall = HEIGHT * share
                paths[state].append(
                    f"M{_short(left)} {_short(top)}h{_short(right - left)}v{_short(tall)}"
                    f"H{_short(left)}z"
                )
                below += share
    return tuple(Area(state, "".join(path)) for state, path in paths.items() if path)


def shares(timeline: GpuTimeline, axis: Axis) -> list[dict[State, float]]:
    """For each column of the axis, the share of its time by state; they add up to 1."""
    since, until, step = axis.period.since, axis.period.until, axis.step
    columns: list[dict[State, float]] = [{} for _ in range(-(-(until - since) // step))]
    frame = timeline.frame
    for start, seconds, result in zip(frame.start, frame.seconds, timeline.states, strict=True):
        begin, end = max(start, since), min(start + seconds, until)
        while begin < end:
            i = (begin - since) // step
            cut = min(end, since + (i + 1) * step)
            columns[i][result.state] = columns[i].get(result.state, 0.0) + cut - begin
            begin = cut
    for i, column in enumerate(columns):
        length = min(step, until - since - i * step)
        covered = sum(column.values())
        if covered < length:
            column[State.UNKNOWN] = column.get(State.UNKNOWN, 0.0) + length - covered
        for state in column:
            column[state] = round(column[state] / max(length, covered), 4)
    return columns


def utilization(timeline: GpuTimeline, axis: Axis) -> str:
    """The mean utilisation of each column as the path of a line, broken where it is not known."""
    values = timeline.frame.columns.get("utilization_ratio")
    if values is None:
        return ""
    since, until, step = axis.period.since, axis.period.until, axis.step
    sums: dict[int, tuple[float, int]] = {}
    rows = zip(timeline.frame.start, timeline.frame.seconds, values, strict=True)
    for start, seconds, value in rows:
        if value is not None and since <= start < until:
            total, length = sums.get((start - since) // step, (0.0, 0))
            sums[(start - since) // step] = total + value * seconds, length + seconds
    width = WIDTH * step / (until - since)
    path: list[str] = []
    before = None
    for i in sorted(sums):
        total, length = sums[i]
        level = _short(HEIGHT * (1 - min(1.0, total / length)))
        if before is None or before[0] != i - 1:
            path.append(f"M{_short(i * width)} {level}")
        elif before[1] == level:
            path.pop()  # the flat stretch that goes on
        else:
            path.append(f"V{level}")
        path.append(f"H{_short(min((i + 1) * width, WIDTH))}")
        before = i, level
    return "".join(path)


def _runs(
    columns: Iterable[dict[State, float]],
) -> Iterator[tuple[int, int, dict[State, float]]]:
    """Neighbouring columns that are the same, as (first, past the last, column)."""
    begin, last = 0, None
    i = -1
    for i, column in enumerate(columns):
        if last is not None and column != last:
            yield begin, i, last
            begin = i
        last = column
    if last is not None:
        yield begin, i + 1, last


def _short(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
