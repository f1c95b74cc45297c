"""advisor.db: deliveries, snoozes and stamps, written by the advisor's processes of one user."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Any

from advisor.errors import AdvisorError
from telemetry.closed import Closed
from telemetry.event import Event, Severity

_APPLICATION_ID = 0x54616C41  # "TalA"


@dataclass(frozen=True, slots=True)
class Mark:
    """How far an outbox was read: a position and the time of the row there."""

    position: int
    time: float


@dataclass(frozen=True, slots=True)
class AlertRow:
    """An alert transition with its place in the order of arrival."""

    alert_id: int
    received: float
    event: Event

    @property
    def course(self) -> tuple[str, str, str]:
        """Host, rule and subject: what raise and clear have in common."""
        attributes = self.event.attributes
        return self.event.host, self.event.rule or "", attributes.get("subject", "")


@dataclass(frozen=True, slots=True)
class Snooze:
    """A rule and a host (patterns) of which nothing is delivered until a time."""

    snooze_id: int
    rule: str
    host: str
    until: float
    made_by: str


class State(Closed):
    """advisor.db, open. May be used by several threads; a call holds the file only briefly."""

    def __init__(self, path: str | Path) -> None:
        """Opens or creates it. Raises AdvisorError naming the remedy."""
        self.path = Path(path)
        self._lock = threading.RLock()
        try:
            self._db = self._open()
        except (OSError, sqlite3.Error) as error:
            raise AdvisorError(f"{path}: {_remedy(self.path, error)}") from None

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        if not self.path.exists():
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640))
        db = sqlite3.connect(self.path, timeout=10.0, isolation_level=None, check_same_thread=False)
        found = db.execute("PRAGMA application_id").fetchone()[0]
        empty = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if found != _APPLICATION_ID and not empty:
            raise sqlite3.DatabaseError("another database lies here")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")  # a delivery that was confirmed stays confirmed
        db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        db.executescript(resources.files("advisor").joinpath("state.sql").read_text("utf-8"))
        return db

    def close(self) -> None:
        """Lets go of the file."""
        with self._lock:
            self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing of the block, for whichever part of the advisor has tables here."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def rows(self, query: str, parameters: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """What a SELECT gives."""
        with self._lock:
            return self._db.execute(query, tuple(parameters)).fetchall()

    # What arrived

    def marks(self, source: str) -> dict[str, Mark]:
        """How far an outbox was read, by host."""
        found = self.rows("SELECT host, position, time FROM intake WHERE source = ?", (source,))
        return {host: Mark(position, time) for host, position, time in found}

    def take_in(
        self, source: str, events: Iterable[Event], marks: Mapping[str, Mark], now: float
    ) -> int:
        """Keeps alert rows of an outbox, in order, with how far it was read; how many are new."""
        count = 0
        with self.transaction() as db:
            for event in events:
                count += db.execute(
                    "INSERT OR IGNORE INTO alert (source, host, sequence, time, received, rule,"
                    " subject, raised, severity, text, gpu_uuid, attributes)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        source,
                        event.host,
                        event.sequence or 0,
                        event.time,
                        now,
                        event.rule or "",
                        event.attributes.get("subject", event.gpu_uuid or ""),
                        bool(event.raised),
                        event.severity.value,
                        event.text,
                        event.gpu_uuid,
                        json.dumps(dict(event.attributes)),
                    ),
                ).rowcount
            for host, mark in marks.items():
                db.execute(
                    "INSERT INTO intake VALUES (?, ?, ?, ?) ON CONFLICT (source, host)"
                    " DO UPDATE SET position = excluded.position, time = excluded.time",
                    (source, host, mark.position, mark.time),
                )
        return count

    def alerts_after(self, places: Mapping[str, int], limit: int = 500) -> list[AlertRow]:
        """Rows after each host's place (from the beginning for a host without), by arrival."""
        rows: list[AlertRow] = []
        for (host,) in self.rows("SELECT DISTINCT host FROM alert"):
            rows += self._alerts(
                "host = ? AND alert_id > ? ORDER BY alert_id LIMIT ?",
                (host, places.get(host, 0), limit),
            )
        return sorted(rows, key=lambda row: row.alert_id)[:limit]

    def open_alerts(self) -> list[AlertRow]:
        """Alerts that stand: the newest row of their course says raised."""
        return self._alerts(
            "raised = 1 AND alert_id IN"
            " (SELECT max(alert_id) FROM alert GROUP BY host, rule, subject) ORDER BY alert_id"
        )

    def last_alert_id(self) -> int:
        """The newest row, 0 where there is none."""
        return int(self.rows("SELECT coalesce(max(alert_id), 0) FROM alert")[0][0])

    def _alerts(self, where: str, parameters: Iterable[Any] = ()) -> list[AlertRow]:
        found = self.rows(
            "SELECT alert_id, received, time, host, text, severity, gpu_uuid, rule, raised,"
            f" attributes, sequence, subject FROM alert WHERE {where}",
            parameters,
        )
        return [
            AlertRow(
                r[0],
                r[1],
                Event(
                    time=r[2],
                    host=r[3],
                    kind="alert",
                    text=r[4],
                    severity=Severity(r[5]),
                    gpu_uuid=r[6],
                    rule=r[7],
                    raised=bool(r[8]),
                    attributes={**json.loads(r[9]), "subject": r[11]},
                    sequence=r[10],
                ),
            )
            for r in found
        ]

    # What was delivered

    def places(self, channel: str) -> dict[str, int]:
        """How far a channel has delivered, by host."""
        return dict(self.rows("SELECT host, alert_id FROM delivery WHERE channel = ?", (channel,)))

    def told(self, channel: str) -> set[tuple[str, str, str]]:
        """Courses of which the channel was told that they are raised."""
        found = self.rows("SELECT host, rule, subject FROM told WHERE channel = ?", (channel,))
        return {(host, rule, subject) for host, rule, subject in found}

    def delivered(self, channel: str, sent: Iterable[AlertRow], places: Mapping[str, int]) -> None:
        """Remembers a confirmed delivery: what was told, and the new places."""
        with self.transaction() as db:
            for row in sent:
                if row.event.raised:
                    db.execute(
                        "INSERT OR REPLACE INTO told VALUES (?, ?, ?, ?, ?)",
                        (channel, *row.course, row.alert_id),
                    )
                else:
                    db.execute(
                        "DELETE FROM told WHERE channel = ? AND host = ? AND rule = ?"
                        " AND subject = ?",
                        (channel, *row.course),
                    )
            for host, place in places.items():
                db.execute(
                    "INSERT INTO delivery VALUES (?, ?, ?) ON CONFLICT (channel, host)"
                    " DO UPDATE SET alert_id = max(alert_id, excluded.alert_id)",
                    (channel, host, place),
                )

    # Snoozes and stamps

    def snooze(self, rule: str, host: str, until: float, now: float, by: str) -> int:
        """Adds a snooze; returns its number."""
        with self.transaction() as db:
            cursor = db.execute(
                "INSERT INTO snooze (rule, host, until, made, made_by) VALUES (?, ?, ?, ?, ?)",
                (rule, host, until, now, by),
            )
            return int(cursor.lastrowid or 0)

    def wake(self, snooze_id: int) -> bool:
        """Ends a snooze; whether there was one."""
        with self.transaction() as db:
            return bool(db.execute("DELETE FROM snooze WHERE snooze_id = ?", (snooze_id,)).rowcount)

    def snoozes(self, now: float) -> list[Snooze]:
        """Those that hold at a time."""
        found = self.rows(
            "SELECT snooze_id, rule, host, until, made_by FROM snooze WHERE until > ?"
            " ORDER BY until",
            (now,),
        )
        return [Snooze(*row) for row in found]

    def stamp(self, name: str) -> float | None:
        """When something was last done."""
        found = self.rows("SELECT time FROM stamp WHERE name = ?", (name,))
        return float(found[0][0]) if found else None

    def set_stamp(self, name: str, time: float) -> None:
        """Remembers when it was done."""
        with self.transaction() as db:
            db.execute(
                "INSERT INTO stamp VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET time = excluded.time",
                (name, time),
            )

    # What people said of windows

    def label(self, labels: Iterable[tuple[str, str, int, int, str, str]], by: str) -> list[int]:
        """Adds labels: host, GPU, first second, end, phase, the row as JSON; their numbers."""
        with self.transaction() as db:
            return [
                int(
                    db.execute(
                        "INSERT INTO label (host, gpu_uuid, since, until, phase, shown, made,"
                        " made_by) VALUES (?, ?, ?, ?, ?, ?, unixepoch(), ?)",
                        (*label, by),
                    ).lastrowid
                    or 0
                )
                for label in labels
            ]

    def unlabel(self, label_id: int) -> bool:
        """Takes a label back; whether there was one."""
        with self.transaction() as db:
            return bool(db.execute("DELETE FROM label WHERE label_id = ?", (label_id,)).rowcount)

    def prune(self, before: float) -> int:
        """Deletes alert rows received before a time, less those of alerts that stand, and
        snoozes that ended; returns how many rows went."""
        with self.transaction() as db:
            db.execute("DELETE FROM snooze WHERE until < ?", (before,))
            return db.execute(
                "DELETE FROM alert WHERE received < ? AND alert_id NOT IN"
                " (SELECT max(alert_id) FROM alert GROUP BY host, rule, subject)",
                (before,),
            ).rowcount


def snoozed(row: AlertRow, snoozes: Iterable[Snooze]) -> bool:
    """Whether a row is not to be delivered now."""
    host, rule, _ = row.course
    return any(fnmatchcase(rule, s.rule) and fnmatchcase(host, s.host) for s in snoozes)


def _remedy(path: Path, error: Exception) -> str:
    words = getattr(error, "strerror", None) or str(error)
    try:
        owner = path.stat().st_uid if path.exists() else path.parent.stat().st_uid
    except OSError:
        return f"cannot be written ({words}); name another file with [service] state"
    if owner != os.geteuid() and os.geteuid() != 0:
        import pwd

        try:
            name = pwd.getpwuid(owner).pw_name
        except KeyError:
            name = str(owner)
        return f"cannot be written by this user ({words}); run it as: sudo -u {name} talla-advisor"
    return f"cannot be used as the advisor's own database ({words})"


__all__ = ["AlertRow", "Mark", "Snooze", "State", "snoozed"]
