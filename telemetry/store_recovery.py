"""A damaged store: set aside under a dated name, and what can be read of it put into a new one."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from telemetry.metrics import FAMILIES
from telemetry.store_schema import IDENTITY, Transaction, is_damage

_AT_ONCE = 256
_MOST_SECONDS = 20.0  # the rest is given up: sampling has to begin
_WINDOW_TABLES = ("window", *(f"m_{f.measurement}" for f in FAMILIES))
_OTHERS = {"host": "host_id", "series": "series_id", "texts": "texts_id", "event": "event_id"}
_OTHERS["inventory"] = "inventory_id"
_SMALL = ("cursor", "memory", "owner_day")


@dataclass(frozen=True, slots=True)
class Recovered:
    """Where the damaged file is now, what was wrong with it, and what could be read of it."""

    aside: Path
    reason: str
    windows: int
    lost_windows: int
    events: int

    @property
    def text(self) -> str:
        """One line for people."""
        return (
            f"the store was damaged ({self.reason}): it is now {self.aside}, a new one was begun"
            f" with {self.windows} windows and {self.events} events of it;"
            f" {self.lost_windows} windows could not be read"
        )


def set_aside(path: Path, now: float) -> Path:
    """Gives a store and its write-ahead log a dated name; returns it. Raises OSError."""
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside


def damaged_files(path: Path) -> list[Path]:
    """Stores that were set aside beside this one, the oldest first."""
    return sorted(
        file
        for file in path.parent.glob(f"{path.name}.damaged-*")
        if not file.name.endswith(("-wal", "-shm"))
    )


def recover(connection: sqlite3.Connection, aside: Path, reason: str) -> Recovered:
    """Copies what can be read of a store that was set aside into a new, empty one.

    A window is copied whole or not at all, and keeps its position.
    """
    until = time.monotonic() + _MOST_SECONDS
    for uri in (f"{aside.as_uri()}?mode=ro", f"{aside.as_uri()}?mode=ro&immutable=1"):
        try:
            connection.execute("ATTACH ? AS old", (uri,))
            connection.execute("SELECT count(*) FROM old.sqlite_master").fetchone()
            break
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                connection.execute("DETACH old")
    else:
        return Recovered(aside, reason, 0, 0, 0)
    try:
        return _copy(connection, aside, reason, until)
    finally:
        with suppress(sqlite3.Error):
            connection.execute("DETACH old")


def _copy(connection: sqlite3.Connection, aside: Path, reason: str, until: float) -> Recovered:
    old = {r[0] for r in connection.execute("SELECT name FROM old.sqlite_master")}
    for table, key in _OTHERS.items():
        if table in old:
            _copy_ranges(connection, [(table, key)], _last(connection, table, key), until)
    for table in _SMALL:
        if table in old:
            with suppress(sqlite3.DatabaseError):
                names = ", ".join(_shared(connection, table))
                connection.execute(
                    f"INSERT OR IGNORE INTO main.{table} ({names}) SELECT {names} FROM old.{table}"
                    + (f" WHERE name <> '{IDENTITY}'" if table == "memory" else "")
                )
    tables = [(t, "window_id") for t in _WINDOW_TABLES if t in old]
    last = _last(connection, "window", "window_id")
    if "window" in old:
        _copy_ranges(connection, tables, last, until)
    for table in _WINDOW_TABLES[1:]:  # of windows whose subjects could not be read nothing is left
        connection.execute(
            f"DELETE FROM main.window WHERE window_id IN (SELECT window_id FROM main.{table}"
            " WHERE series_id NOT IN (SELECT series_id FROM main.series))"
        )
    connection.execute(
        "DELETE FROM main.window WHERE host_id NOT IN (SELECT host_id FROM main.host)"
    )
    for table in _WINDOW_TABLES[1:]:
        connection.execute(
            f"DELETE FROM main.{table} WHERE window_id NOT IN (SELECT window_id FROM main.window)"
        )
    for table in ("event", "inventory"):
        connection.execute(
            f"DELETE FROM main.{table} WHERE host_id NOT IN (SELECT host_id FROM main.host)"
        )
    # Positions go on where they were, also where the newest rows are lost: cursors point there.
    for table, key in (("window", "window_id"), ("event", "event_id")):
        high = _last(connection, table, key)
        connection.execute("DELETE FROM main.sqlite_sequence WHERE name = ?", (table,))
        connection.execute("INSERT INTO main.sqlite_sequence VALUES (?, ?)", (table, high))
    windows, events = (
        connection.execute(f"SELECT count(*) FROM main.{t}").fetchone()[0]
        for t in ("window", "event")
    )
    return Recovered(aside, reason, windows, max(0, _kept(connection, last) - windows), events)


def _kept(connection: sqlite3.Connection, last: int) -> int:
    """About how many windows the old store held: by its index, where that can be read."""
    with suppress(sqlite3.DatabaseError):
        query = "SELECT count(*) FROM old.window INDEXED BY sqlite_autoindex_window_1"
        return int(connection.execute(query).fetchone()[0])
    return last


def _last(connection: sqlite3.Connection, table: str, key: str) -> int:
    highest = 0
    for query, parameters in (
        ("SELECT seq FROM old.sqlite_sequence WHERE name = ?", (table,)),
        (f"SELECT max({key}) FROM old.{table}", ()),
        (f"SELECT max({key}) FROM main.{table}", ()),
    ):
        with suppress(sqlite3.DatabaseError):
            row = connection.execute(query, parameters).fetchone()
            highest = max(highest, int(row[0] or 0) if row is not None else 0)
    return highest


def _shared(connection: sqlite3.Connection, table: str) -> list[str]:
    names = [r[1] for r in connection.execute(f"PRAGMA main.table_info({table})")]
    old = {r[1] for r in connection.execute(f"PRAGMA old.table_info({table})")}
    return [n for n in names if n in old]


def _copy_ranges(
    connection: sqlite3.Connection, tables: list[tuple[str, str]], last: int, until: float
) -> None:
    """Copies rows of all the tables by key, in pieces, halved where one cannot be read.

    The newest come first, in case there is no time for all.
    """
    columns = {table: ", ".join(_shared(connection, table)) for table, _ in tables}
    pieces = list(_pieces(last))
    while pieces and time.monotonic() < until:
        first, end = pieces.pop()
        try:
            with Transaction(connection):
                for table, key in tables:
                    names = columns[table]
                    connection.execute(
                        f"INSERT OR IGNORE INTO main.{table} ({names}) SELECT {names}"
                        f" FROM old.{table} WHERE {key} >= ? AND {key} < ?",
                        (first, end),
                    )
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            if end - first > 1:
                middle = (first + end) // 2
                pieces += [(first, middle), (middle, end)]


def _pieces(last: int) -> Iterator[tuple[int, int]]:
    for first in range(0, last + 1, _AT_ONCE):
        yield first, min(first + _AT_ONCE, last + 1)


__all__ = ["Recovered", "damaged_files", "recover", "set_aside"]
