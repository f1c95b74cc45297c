"""The same answers as InfluxDB's, made of the windows: what a panel's query claims to return."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping

from dashboards.description import Per, Query, Value
from telemetry.metrics import family
from telemetry.window import Row, Window
from tests.grafana.filled import Filled
from tests.servers.influxdb import Cell

Group = tuple[tuple[str, ...], int | None]
"""Values of the tags, and the start of the interval."""
Answer = dict[Group, tuple[Cell, ...]]


def asked(query: Query, filled: Filled, window: str, interval: int, since: int, until: int) -> str:
    """The query as Grafana sends it, all hosts and GPUs chosen."""
    return (
        query.influxql()
        .replace("$timeFilter", f"time >= {since}s AND time <= {until}s")
        .replace("$__interval", f"{interval}s")
        .replace("$window", window)
        .replace("$host", ".*" if len(filled.hosts) != 1 else filled.hosts[0])
        .replace("$gpu", ".*")
    )


def received(query: Query, filled: Filled, influxql: str) -> Answer:
    """InfluxDB's own answer by group; every row of it."""
    answer: Answer = {}
    for series in filled.influxdb.query(influxql, filled.database, "s"):
        tags = tuple(series.tags.get(name, "") for name in query.by)
        for row in series.rows:
            if all(cell is None for cell in row[1:]):
                continue
            start = int(row[0]) if query.per is not Per.RANGE else None  # type: ignore[arg-type]
            answer[tags, start] = tuple(row[1:])
    return answer


def expected(query: Query, filled: Filled, window: str, interval: int) -> Answer | None:
    """The answer made of the windows; None for what only the server makes (rates)."""
    if any(value.aggregate in ("rate", "rise", "raw") for value in query.values):
        return None
    found: dict[Group, list[tuple[int, Mapping[str, Cell]]]] = defaultdict(list)
    tier = {"10s": 10, "5m": 300}[query.window if query.window in ("10s", "5m") else window]
    for w in filled.windows:
        if w.tier != tier:
            continue
        for tags, cells in _rows(query, filled, w):
            if all(cells.get(name) == wanted for name, wanted in query.where):
                start = w.start - w.start % interval if query.per is Per.INTERVAL else None
                found[tags, start].append((w.start, cells))
    answer: Answer = {}
    for group, rows in found.items():
        told = tuple(_value(value, sorted(rows, key=lambda row: row[0])) for value in query.values)
        if any(cell is not None for cell in told):
            answer[group] = told
    return answer


def _rows(
    query: Query, filled: Filled, window: Window
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Cell]]]:
    declared = family(query.measurement)
    states = filled.states[window.host, window.tier, window.start]
    for key, row in window.rows.items():
        if key[0] != query.measurement:
            continue
        texts = {**row.texts, **states.get(key, {})}
        tags = {"host": window.host, **dict(zip(declared.tags, key[1:], strict=True))}
        tags.update({name: texts[name] for name in declared.labels if name in texts})
        yield tuple(tags.get(name, "") for name in query.by), _cells(window, row, texts)


def _cells(window: Window, row: Row, texts: Mapping[str, str]) -> Mapping[str, Cell]:
    return {**row.values, **texts, "window_seconds": float(window.seconds)}


def _value(value: Value, rows: list[tuple[int, Mapping[str, Cell]]]) -> Cell:
    cells = [row[value.field] for _, row in rows if value.field in row]
    if not cells:
        return None
    if value.aggregate == "last":
        # Rows of one time are told apart by nothing: any of them is a last one.
        return cells[-1]
    numbers = [float(cell) for cell in cells]  # type: ignore[arg-type]
    match value.aggregate:
        case "mean":
            made = math.fsum(numbers) / len(numbers)
        case "sum":
            made = math.fsum(numbers)
        case "max":
            made = max(numbers)
        case "min":
            made = min(numbers)
        case "percentile_95":
            # InfluxDB's nearest rank: the value at floor(n * p / 100 + 0.5) - 1 of the sorted.
            at = math.floor(len(numbers) * 0.95 + 0.5) - 1
            if at < 0:
                return None
            made = sorted(numbers)[at]
        case _:
            raise AssertionError(value.aggregate)
    return made / value.divisor
