"""How events lie in the store."""

from __future__ import annotations

import json
import sqlite3

from telemetry.event import Event, Severity


def insert_event(connection: sqlite3.Connection, host_id: int, event: Event) -> None:
    """Adds an event, with the next number of its host."""
    connection.execute(
        "INSERT INTO event (host_id, sequence, time, kind, severity, text, gpu_uuid, rule,"
        " raised, attributes) SELECT ?, coalesce(max(sequence), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?"
        " FROM event WHERE host_id = ?",
        (
            host_id,
            event.time,
            event.kind,
            event.severity.value,
            event.text,
            event.gpu_uuid,
            event.rule,
            event.raised,
            json.dumps(dict(event.attributes)),
            host_id,
        ),
    )


def read_events(
    connection: sqlite3.Connection,
    host: str | None,
    period: tuple[float, float],
    after_id: int,
    limit: int,
) -> list[tuple[int, Event]]:
    """Events of [since, until) in order of commit, with the position of each."""
    rows = connection.execute(
        "SELECT event_id, time, name, kind, text, severity, gpu_uuid, rule, raised, attributes,"
        " sequence FROM event JOIN host USING (host_id) WHERE event_id > ? AND time >= ?"
        " AND time < ? AND (? IS NULL OR name = ?) ORDER BY event_id LIMIT ?",
        (after_id, *period, host, host, limit),
    )
    return [
        (
            r[0],
            Event(
                time=r[1],
                host=r[2],
                kind=r[3],
                text=r[4],
                severity=Severity(r[5]),
                gpu_uuid=r[6],
                rule=r[7],
                raised=None if r[8] is None else bool(r[8]),
                attributes=json.loads(r[9]),
                sequence=r[10],
            ),
        )
        for r in rows
    ]
