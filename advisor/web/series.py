"""Frames become the columns that charts draw: one axis of time, holes, fewer points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MOST_POINTS = 1500
"""More would only be drawn over each other, on the widest screens too."""

FINE_SECONDS = 3 * 3600
"""Up to this long, a course is told in 10-second windows, else in 5-minute ones."""

Points = Mapping[int, Mapping[str, float]]
"""Start of window -> field -> value."""
Runs = list[list[Any]]
"""`[start, end, state, cause or None]`, in order."""


def tier_of(since: int, until: int) -> int:
    """The tier that a course over [since, until) is told in."""
    return 10 if until - since <= FINE_SECONDS else 300


def course(
    step: int,
    gpus: Sequence[tuple[dict[str, Any], Points, Runs]],
    host: Points,
    gpu_fields: Sequence[str],
    host_fields: Sequence[str],
) -> dict[str, Any]:
    """`step`, `time`, `gpus` (head, columns by field, `states`) and `host` (columns by field).

    Cells that were not read are None; where windows are missing there is one row of None, so that
    no line is drawn over a hole.
    """
    starts = sorted({*host, *(start for _, points, _ in gpus for start in points)})
    axis = with_holes(starts, step)
    groups = _groups(axis, -(-len(axis) // MOST_POINTS))
    return {
        "step": step,
        "time": [group[0] for group in groups],
        "gpus": [
            {**head, "columns": _columns(points, groups, gpu_fields), "states": runs}
            for head, points, runs in gpus
        ],
        "host": _columns(host, groups, host_fields),
    }


def with_holes(starts: Iterable[int], step: int) -> list[int]:
    """The axis with one more mark in each hole."""
    axis: list[int] = []
    for start in starts:
        if axis and start - axis[-1] > 2 * step:
            axis.append(axis[-1] + step)
        axis.append(start)
    return axis


def runs_of(windows: Iterable[tuple[int, int, str, str | None]]) -> Runs:
    """Windows (start, end, state, cause) in order, joined where they say the same."""
    runs: Runs = []
    for start, end, state, cause in windows:
        last = runs[-1] if runs else None
        if last is not None and last[2:] == [state, cause] and start <= last[1] + (end - start):
            last[1] = end
        else:
            runs.append([start, end, state, cause])
    return runs


def _groups(axis: list[int], size: int) -> list[list[int]]:
    size = max(1, size)
    return [axis[i : i + size] for i in range(0, len(axis), size)]


def _columns(
    points: Points, groups: list[list[int]], names: Sequence[str]
) -> dict[str, list[float | None]]:
    columns: dict[str, list[float | None]] = {}
    for name in names:
        column: list[float | None] = []
        for group in groups:
            values = [
                value
                for start in group
                if (row := points.get(start)) is not None and (value := row.get(name)) is not None
            ]
            column.append(float(f"{sum(values) / len(values):.5g}") if values else None)
        if any(value is not None for value in column):
            columns[name] = column
    return columns
