"""Where hosts leave their alert rows: a local store, or InfluxDB for a fleet.

Rows are taken by the order in which their host made them, never by time: those that arrive late,
after a network was down, are taken like any other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from advisor.influxql import InfluxQL, quoted
from advisor.service.config import InfluxReading
from advisor.state import Mark
from telemetry.clock import Clock
from telemetry.event import Event, Severity
from telemetry.store import StoreReader

_LOOK_BACK = "30d"
"""How late rows may arrive: as long as a store of an agent that cannot ship is trusted to last."""
_FIRST_LOOK_SECONDS = 30 * 86_400.0
_SEEN_WITHIN = "2d"


@dataclass(frozen=True, slots=True)
class Taken:
    """New alert rows, in order for a host, and the marks up to which they go."""

    events: list[Event] = field(default_factory=list)
    marks: dict[str, Mark] = field(default_factory=dict)


class Outbox(Protocol):
    """Alert rows of one or many hosts."""

    name: str

    def take(self, marks: Mapping[str, Mark]) -> Taken:
        """What came after the marks. Raises StoreError or AdvisorError where it cannot be read."""

    def last_seen(self) -> dict[str, float]:
        """The end of each host's newest window, Unix seconds. Raises as `take`."""


class LocalOutbox:
    """The event table of a local store, in the order of commit."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.name = f"store:{path}"
        self._path = path
        self._clock = clock

    def take(self, marks: Mapping[str, Mark]) -> Taken:
        mark = marks.get("", Mark(0, 0.0))
        with StoreReader(self._path) as store:
            if not mark.position:  # a store of years is not read as a whole at the first look
                rows = store.events(since=self._clock.wall() - _FIRST_LOOK_SECONDS)
            else:
                rows = store.events(after_id=mark.position - 1)
                if rows and rows[0][0] == mark.position and rows[0][1].time == mark.time:
                    rows = rows[1:]
                else:  # another store lies here now: its rows begin anew
                    rows = store.events(since=mark.time)
        if not rows:
            return Taken()
        last_id, last = rows[-1]
        events = [event for _, event in rows if event.kind == "alert"]
        return Taken(events, {"": Mark(last_id, last.time)})

    def last_seen(self) -> dict[str, float]:
        found: dict[str, float] = {}
        with StoreReader(self._path) as store:
            for host in store.hosts():
                ends = [s[1] for tier in (10, 300) if (s := store.span(host, tier)) is not None]
                if ends:
                    found[host] = float(max(ends))
        return found


class InfluxOutbox:
    """The event rows that the agents ship, by host and sequence."""

    def __init__(self, settings: InfluxReading) -> None:
        self.name = f"influx:{settings.url}/{settings.database}"
        self._influx = InfluxQL(settings)

    def take(self, marks: Mapping[str, Mark]) -> Taken:
        taken = Taken()
        newest = self._influx.query(
            'SELECT last("sequence") FROM "event" WHERE "kind" = \'alert\''
            f' AND time > now() - {_LOOK_BACK} GROUP BY "host"'
        )
        for series in newest:
            host = series.tags["host"]
            last = int(series.rows[0][1])
            mark = marks.get(host, Mark(0, 0.0))
            if last == mark.position:
                continue
            # Below the mark: the host's store was made anew, and counts from one.
            since = (
                f'"sequence" > {mark.position}'
                if last > mark.position
                else f"time > {int(mark.time * 1e9)}"
            )
            events = self._rows(host, since)
            if events:
                taken.events.extend(events)
                taken.marks[host] = Mark(events[-1].sequence or 0, events[-1].time)
        return taken

    def _rows(self, host: str, since: str) -> list[Event]:
        series = self._influx.query(
            'SELECT "sequence", "severity", "text", "raised", "attributes" FROM "event"'
            f' WHERE "kind" = \'alert\' AND "host" = {quoted(host)} AND {since}'
            f' AND time > now() - {_LOOK_BACK} GROUP BY "rule", "gpu_uuid"'
        )
        events = [_event(host, s.tags, record) for s in series for record in s.records()]
        return sorted(events, key=lambda event: event.sequence or 0)

    def last_seen(self) -> dict[str, float]:
        series = self._influx.query(
            'SELECT last("covered_seconds") FROM "agent"'
            f' WHERE time > now() - {_SEEN_WITHIN} GROUP BY "host"'
        )
        return {s.tags["host"]: s.rows[0][0] / 1e9 + 10.0 for s in series}


def _event(host: str, tags: Mapping[str, str], record: Mapping[str, Any]) -> Event:
    return Event(
        # The last digits of the time hold the sequence, see the agent's line protocol.
        time=record["time"] // 1000 / 1e6,
        host=host,
        kind="alert",
        text=record.get("text", ""),
        severity=Severity(record.get("severity", "warning")),
        gpu_uuid=tags.get("gpu_uuid") or None,
        rule=tags.get("rule") or "",
        raised=bool(record.get("raised", 0.0)),
        attributes=json.loads(record.get("attributes", "{}")),
        sequence=int(record["sequence"]),
    )


__all__ = ["InfluxOutbox", "LocalOutbox", "Outbox", "Taken"]
