"""The history of a fleet in InfluxDB: 5-minute windows by InfluxQL, host by host, day by day.

Only plain SELECTs of the fields that are asked for, which every InfluxDB from 1.6 on answers. A
day that is over is kept as a digest once it was read, and read again only where the server now
has another number of points of it (a backlog that arrived late).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

from advisor.errors import AdvisorError
from advisor.influxql import InfluxQL, Series, quoted
from advisor.service.config import InfluxReading
from telemetry.closed import Closed
from telemetry.event import Event, Severity
from telemetry.inventory import Inventory
from telemetry.metrics import FAMILIES, family
from telemetry.state import STATE_TEXTS
from telemetry.store import OwnerDay
from telemetry.window import Frame, Key

DAY = 86_400
_NANOSECONDS = 1_000_000_000
_WINDOW_SECONDS = "window_seconds"
_SPANNED = ("gpu", "host", "agent")
_SETTLED = 3600.0  # a day is over so long after its end


class Digests(Protocol):
    """Days that were read before."""

    def get(self, place: str, day: int, points: int) -> list[Frame] | None:
        """The frames of a day, where it is kept with that number of points."""

    def put(self, place: str, day: int, points: int, frames: Sequence[Frame]) -> None:
        """Keeps a day."""


class InfluxHistory(Closed):
    """All hosts of one InfluxDB."""

    def __init__(
        self,
        settings: InfluxReading,
        digests: Digests | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises NoAnswer where the server or its database cannot be read."""
        self._place = f"{settings.url} {settings.database_5m or settings.database}"
        self._influx = InfluxQL(settings)
        self._long = InfluxQL(settings, settings.database_5m or settings.database)
        self._digests = digests
        self._clock = clock
        self._points: dict[tuple[str, int], dict[tuple[str, int], int]] = {}
        self._known = self._field_keys()
        self._spans = self._read_spans()
        self._hosts = sorted(set(self._spans) | set(self._values(self._influx, "inventory")))
        self.days_read = 0
        self.days_from_digests = 0

    def close(self) -> None:
        """Lets go of the connections."""
        self._influx.close()
        self._long.close()

    def hosts(self) -> list[str]:
        return list(self._hosts)

    def span(self, host: str) -> tuple[int, int] | None:
        return self._spans.get(host)

    def frames(
        self,
        host: str,
        measurement: str,
        *,
        since: float,
        until: float,
        fields: Sequence[str],
        texts: bool = False,
    ) -> list[Frame]:
        declared = family(measurement).fields()
        for name in fields:
            if name not in declared:
                raise KeyError(f"{measurement} has no field {name}")
        span = self._spans.get(host)
        if span is None or since >= until:
            return []
        first = max(math.floor(since), span[0]) // DAY * DAY
        found: dict[Key, list[Frame]] = {}
        for day in range(first, min(math.ceil(until), span[1]), DAY):
            for frame in self._day(host, measurement, day, tuple(fields), texts):
                found.setdefault(frame.key, []).append(frame)
        pieces = (_joined(found[key], since, until, texts) for key in sorted(found))
        return [frame for frame in pieces if len(frame)]

    def inventory(self, host: str) -> Inventory | None:
        newest = self._inventories(host, 'last("document")', "")
        return newest[-1][1] if newest else None

    def inventories(
        self, host: str, *, since: float, until: float
    ) -> list[tuple[float, Inventory]]:
        begin = int(since * _NANOSECONDS)
        before = self._inventories(host, 'last("document")', f" AND time <= {begin}")
        later = self._inventories(host, '"document"', f" AND {_between(since, until)}")
        found = before + [entry for entry in later if entry[0] > since]
        if not found:
            newest = self.inventory(host)
            return [] if newest is None else [(since, newest)]
        return found

    def _inventories(self, host: str, what: str, when: str) -> list[tuple[float, Inventory]]:
        series = self._influx.query(
            f'SELECT {what} FROM "inventory" WHERE "host" = {quoted(host)}{when}'
        )
        if not series:
            return []
        from advisor.inventories import from_store  # pydantic is loaded only where it is needed

        origin = f"{self._place}: {host}"
        found = []
        for row in series[0].rows:
            try:
                document = json.loads(row[1])
            except ValueError:
                raise AdvisorError(f"{origin}: its inventory is no JSON") from None
            found.append((row[0] / _NANOSECONDS, from_store(document, origin)))
        return found

    def owner_days(self, host: str, *, since: float, until: float) -> list[OwnerDay]:
        """None: in InfluxDB the rows of processes stay as long as all others."""
        del host, since, until
        return []

    def events(self, host: str, *, since: float, until: float) -> list[Event]:
        series = self._influx.query(
            'SELECT "sequence", "severity", "text", "raised", "attributes" FROM "event"'
            f' WHERE "host" = {quoted(host)} AND {_between(since, until)}'
            ' GROUP BY "kind", "rule", "gpu_uuid"'
        )
        events = [event_of(host, s.tags, record) for s in series for record in s.records()]
        return sorted(events, key=lambda event: event.sequence or 0)

    # What there is

    def _field_keys(self) -> dict[str, frozenset[str]]:
        """The numeric fields and texts that any host has, by measurement."""
        names = ", ".join(f'"{f.measurement}"' for f in FAMILIES)
        return {
            s.name: frozenset(str(row[0]) for row in s.rows)
            for s in self._long.query(f"SHOW FIELD KEYS FROM {names}")
        }

    def _values(self, influx: InfluxQL, measurement: str) -> list[str]:
        series = influx.query(f'SHOW TAG VALUES FROM "{measurement}" WITH KEY = "host"')
        return [str(row[1]) for s in series for row in s.rows]

    def _read_spans(self) -> dict[str, tuple[int, int]]:
        spans: dict[str, tuple[int, int]] = {}
        names = ", ".join(f'"{name}"' for name in _SPANNED)
        for pick in ("first", "last"):
            for series in self._long.query(
                f'SELECT {pick}("{_WINDOW_SECONDS}") FROM {names} WHERE "window" = \'5m\''
                ' GROUP BY "host"'
            ):
                start = series.rows[0][0] // _NANOSECONDS
                end = start + int(series.rows[0][1])
                known = spans.get(series.tags["host"], (start, end))
                spans[series.tags["host"]] = min(known[0], start), max(known[1], end)
        return spans

    def _day_points(self, host: str, day: int) -> Mapping[tuple[str, int], int]:
        """How many points each measurement has on each day, by measurement and day."""
        span = self._spans[host]
        month = day // (32 * DAY)
        known = self._points.get((host, month))
        if known is None:
            begin = max(month * 32 * DAY, span[0] // DAY * DAY)
            end = min((month + 1) * 32 * DAY, span[1])
            names = ", ".join(f'"{f.measurement}"' for f in FAMILIES)
            known = self._points[host, month] = {
                (s.name, row[0] // _NANOSECONDS): int(row[1])
                for s in self._long.query(
                    f'SELECT count("{_WINDOW_SECONDS}") FROM {names}'
                    f' WHERE "host" = {quoted(host)} AND "window" = \'5m\''
                    f" AND {_between(begin, end)} GROUP BY time(1d) fill(none)"
                )
                for row in s.rows
            }
        return known

    # One day

    def _day(
        self, host: str, measurement: str, day: int, fields: tuple[str, ...], texts: bool
    ) -> list[Frame]:
        place = ""
        if self._digests is not None and day + DAY + _SETTLED < self._clock():
            points = self._day_points(host, day).get((measurement, day), 0)
            if not points:
                return []
            told = f"{','.join(fields)} {texts}"
            place = f"{self._place} {host} {measurement} {told}"
            kept = self._digests.get(place, day, points)
            if kept is not None:
                self.days_from_digests += 1
                return kept
        frames = self._select(host, measurement, day, fields, texts)
        self.days_read += 1
        if place and self._digests is not None:
            self._digests.put(place, day, sum(map(len, frames)), frames)
        return frames

    def _select(
        self, host: str, measurement: str, day: int, fields: tuple[str, ...], texts: bool
    ) -> list[Frame]:
        declared = family(measurement)
        there = self._known.get(measurement, frozenset())
        if not there:
            return []
        asked = [name for name in fields if name in there]
        said = [
            name
            for name in (declared.texts if texts else ())
            if name in there and (measurement, name) not in STATE_TEXTS
        ]
        columns = ", ".join(f'"{name}"' for name in (_WINDOW_SECONDS, *asked, *said))
        tags = ", ".join(f'"{name}"' for name in (*declared.tags, *declared.labels))
        series = self._long.query(
            f'SELECT {columns} FROM "{measurement}" WHERE "host" = {quoted(host)}'
            f" AND \"window\" = '5m' AND {_between(day, day + DAY)}"
            + (f" GROUP BY {tags}" if tags else "")
        )
        found: dict[Key, list[Frame]] = {}
        for one in series:
            key = (measurement, *(one.tags.get(name, "") for name in declared.tags))
            labels = {n: one.tags[n] for n in declared.labels if texts and one.tags.get(n)}
            found.setdefault(key, []).append(_frame(key, one, fields, asked, said, labels, texts))
        return [_joined(found[key], day, day + DAY, texts) for key in sorted(found)]


def _frame(
    key: Key,
    series: Series,
    fields: Sequence[str],
    asked: Sequence[str],
    said: Sequence[str],
    labels: Mapping[str, str],
    texts: bool,
) -> Frame:
    """A series, whose columns are time, window_seconds, the numbers and the texts."""
    cells = list(zip(*series.rows, strict=True))
    numbers = dict(zip(asked, cells[2:], strict=False))
    absent: list[float | None] = [None] * len(series.rows)
    frame = Frame(
        key,
        start=[t // _NANOSECONDS for t in cells[0]],
        seconds=[int(s) for s in cells[1]],
        columns={
            name: [None if c is None else float(c) for c in numbers[name]]
            if name in numbers
            else list(absent)
            for name in fields
        },
    )
    if texts:
        same: dict[tuple[Any, ...], Mapping[str, str]] = {}
        words = cells[2 + len(asked) :]
        for row in zip(*words, strict=True) if words else ((),) * len(series.rows):
            told = same.get(row)
            if told is None:
                pairs = {n: c for n, c in zip(said, row, strict=True) if c is not None}
                told = same[row] = {**labels, **pairs}
            frame.texts.append(told)
    return frame


def _joined(frames: Sequence[Frame], since: float, until: float, texts: bool) -> Frame:
    """One frame of the windows in [since, until), in order of time."""
    whole = frames[0]
    if len(frames) > 1:
        whole = Frame(
            whole.key,
            [s for f in frames for s in f.start],
            [s for f in frames for s in f.seconds],
            {n: [c for f in frames for c in f.columns[n]] for n in whole.columns},
            [t for f in frames for t in f.texts],
        )
    start = whole.start
    if all(a < b for a, b in pairwise(start)) and (
        not start or (since <= start[0] and start[-1] < until)
    ):
        return whole
    order = sorted((i for i, s in enumerate(start) if since <= s < until), key=start.__getitem__)
    return Frame(
        whole.key,
        [start[i] for i in order],
        [whole.seconds[i] for i in order],
        {n: [column[i] for i in order] for n, column in whole.columns.items()},
        [whole.texts[i] for i in order] if texts else [],
    )


def event_of(host: str, tags: Mapping[str, str], record: Mapping[str, Any]) -> Event:
    """An event of its point; the last digits of the time hold the sequence."""
    raised = record.get("raised")
    return Event(
        time=record["time"] // 1000 / 1e6,
        host=host,
        kind=tags.get("kind") or "alert",
        text=record.get("text", ""),
        severity=Severity(record.get("severity", "warning")),
        gpu_uuid=tags.get("gpu_uuid") or None,
        rule=tags.get("rule") or None,
        raised=None if raised is None else bool(raised),
        attributes=json.loads(record.get("attributes", "{}")),
        sequence=int(record["sequence"]),
    )


def _between(since: float, until: float) -> str:
    begin, end = (math.ceil(t) * _NANOSECONDS for t in (since, until))
    return f"time >= {begin} AND time < {end}"


__all__ = ["Digests", "InfluxHistory", "event_of"]
