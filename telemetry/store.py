"""The embedded store: windows, events, inventories and cursors in one SQLite file.

One process writes (it holds a lock beside the file); any number of readers, of any user who may
read the file, look on while it writes and after it has stopped.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from telemetry.event import Event, Severity
from telemetry.metrics import FAMILIES
from telemetry.store_rows import Rows
from telemetry.window import Frame, Window

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x54616C61  # "Tala"


class StoreError(Exception):
    """The store cannot be used; the message is one line for the user."""


class StoreReader:
    """Reads a store, also while an agent of another user writes it."""

    def __init__(self, path: str | Path) -> None:
        """Raises StoreError if the file is absent, unreadable, no store, or of a newer version."""
        self.path = Path(path)
        if not self.path.exists():
            raise StoreError(
                f"{path}: there is no store here; has the agent run, or is the path right?"
            )
        self._connection = self._connect()
        _check(self._connection, self.path)
        self._rows = Rows(self._connection)

    def _connect(self) -> sqlite3.Connection:
        # A WAL database that was closed cleanly has no -wal file, and a reader that may not write
        # the folder can open it only as immutable.
        wal = self.path.with_name(self.path.name + "-wal")
        immutable = "" if wal.exists() else "&immutable=1"
        uri = f"{self.path.absolute().as_uri()}?mode=ro{immutable}"
        try:
            connection = sqlite3.connect(uri, uri=True, timeout=10.0, check_same_thread=False)
            connection.execute("SELECT 1 FROM sqlite_master")
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: cannot be read as a store ({error})") from error
        return connection

    def close(self) -> None:
        """Lets go of the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def hosts(self) -> list[str]:
        """The hosts that have windows or an inventory, by name."""
        return self._rows.hosts()

    def span(self, host: str, tier: int) -> tuple[int, int] | None:
        """First second and end of the host's windows of a tier, or None where there are none."""
        return self._rows.span(host, tier)

    def frames(
        self,
        host: str,
        measurement: str,
        tier: int,
        *,
        since: float,
        until: float,
        fields: Sequence[str],
        texts: bool = False,
    ) -> list[Frame]:
        """The windows that begin in [since, until), a frame for each subject, in order of key."""
        return self._rows.frames(
            host, measurement, tier, since=since, until=until, fields=fields, texts=texts
        )

    def windows_after(self, position: int, limit: int) -> list[tuple[int, Window]]:
        """Up to `limit` whole windows committed after a cursor's position, with theirs."""
        return self._rows.windows_after(position, limit)

    def last_window_id(self) -> int:
        """The position of the newest window, 0 where there are none."""
        return self._rows.last_window_id()

    def events(
        self, host: str | None = None, *, since: float = 0.0, until: float = 1e12, after_id: int = 0
    ) -> list[tuple[int, Event]]:
        """Events in order of commit, with the position of each."""
        rows = self._connection.execute(
            "SELECT event_id, time, name, kind, text, severity, gpu_uuid, rule, raised, attributes,"
            " sequence FROM event JOIN host USING (host_id) WHERE event_id > ? AND time >= ?"
            " AND time < ? AND (? IS NULL OR name = ?) ORDER BY event_id",
            (after_id, since, until, host, host),
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

    def inventory(self, host: str) -> dict[str, Any] | None:
        """The newest inventory of a host, as the JSON object of `telemetry.inventory`."""
        row = self._connection.execute(
            "SELECT document FROM inventory JOIN host USING (host_id) WHERE name = ?"
            " ORDER BY inventory_id DESC LIMIT 1",
            (host,),
        ).fetchone()
        return None if row is None else json.loads(row[0])

    def inventories_after(
        self, position: int, limit: int
    ) -> list[tuple[int, float, str, dict[str, Any]]]:
        """Up to `limit` inventories committed after a position: position, time, host, document."""
        rows = self._connection.execute(
            "SELECT inventory_id, time, name, document FROM inventory JOIN host USING (host_id)"
            " WHERE inventory_id > ? ORDER BY inventory_id LIMIT ?",
            (position, limit),
        )
        return [(r[0], r[1], r[2], json.loads(r[3])) for r in rows]

    def memory(self, name: str) -> str | None:
        """The memory of that name, None where there is none."""
        try:
            row = self._connection.execute(
                "SELECT content FROM memory WHERE name = ?", (name,)
            ).fetchone()
        except sqlite3.OperationalError:  # a store that was written before there were memories
            return None
        return None if row is None else str(row[0])

    def cursor(self, name: str) -> int:
        """The position of a cursor, 0 if it was never moved."""
        row = self._connection.execute(
            "SELECT position FROM cursor WHERE name = ?", (name,)
        ).fetchone()
        return 0 if row is None else int(row[0])


class Store(StoreReader):
    """The one writer of a store. It can also read."""

    def __init__(self, path: str | Path) -> None:
        """Opens or creates the store. Raises StoreError, leaving the file as it was."""
        self.path = Path(path)
        self._lock = self._take_lock()
        try:
            self._connection = self._open()
        except BaseException:
            os.close(self._lock)
            raise
        self._rows = Rows(self._connection)

    def _take_lock(self) -> int:
        if not self.path.parent.is_dir():
            raise StoreError(f"{self.path.parent}: there is no such folder for the store")
        lock = self.path.with_name(self.path.name + ".lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be written ({error.strerror})") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise StoreError(
                f"{self.path}: another process writes this store (a running agent?)"
            ) from error
        return descriptor

    def _open(self) -> sqlite3.Connection:
        new = not self.path.exists() or self.path.stat().st_size == 0
        try:
            if not new:
                # A look before anything is changed: opening WAL mode would already write.
                uri = f"{self.path.absolute().as_uri()}?mode=ro"
                with closing(sqlite3.connect(uri, uri=True)) as look:
                    _check(look, self.path)
            else:
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640))
            connection = sqlite3.connect(
                self.path, timeout=10.0, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA cache_size = -1024")
            connection.execute("PRAGMA wal_autocheckpoint = 500")
            with _Transaction(connection):
                if new:
                    _execute_script(connection, _schema())
                    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                _match_declarations(connection)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path}: cannot be written as a store ({error})") from error
        return connection

    def close(self) -> None:
        super().close()
        with suppress(OSError):
            os.close(self._lock)

    def append(
        self,
        windows: Iterable[Window] = (),
        *,
        events: Iterable[Event] = (),
        inventories: Iterable[tuple[float, str, Mapping[str, Any]]] = (),
        memories: Mapping[str, str] | None = None,
    ) -> None:
        """Commits windows, events, inventories (time, host, document) and memories together.

        A memory is a text by name, such as what the alert rules must know after a restart; it
        takes the place of an older one.

        A window with the host, tier and start of an older one takes its place. Raises StoreError,
        with nothing of it kept, where the file cannot be written (a full disk, say).
        """
        try:
            with _Transaction(self._connection):
                for window in windows:
                    self._rows.insert(window)
                for event in events:
                    self._insert_event(event)
                for time, host, document in inventories:
                    self._connection.execute(
                        "INSERT INTO inventory (host_id, time, document) VALUES (?, ?, ?)",
                        (self._rows.host_id(host), time, json.dumps(document)),
                    )
                for name, text in (memories or {}).items():
                    self._connection.execute(
                        "INSERT INTO memory VALUES (?, ?)"
                        " ON CONFLICT (name) DO UPDATE SET content = excluded.content",
                        (name, text),
                    )
        except sqlite3.Error as error:
            self._rows.forget()
            raise StoreError(f"{self.path}: cannot be written ({error})") from error

    def _insert_event(self, event: Event) -> None:
        host_id = self._rows.host_id(event.host)
        self._connection.execute(
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

    def move_cursor(self, name: str, position: int) -> None:
        """Sets a cursor's position, durably."""
        self._connection.execute(
            "INSERT INTO cursor VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET position = excluded.position",
            (name, position),
        )

    def prune(self, tier: int, before: float, *, limit: int = 200) -> int:
        """Deletes up to `limit` windows of a tier that ended before a time; returns how many."""
        with _Transaction(self._connection):
            return self._rows.prune(tier, before, limit)


class _Transaction:
    """BEGIN IMMEDIATE .. COMMIT, rolled back where the block raises."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            # SQLite ends the transaction itself on some errors (a full disk), on others not.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def _schema() -> str:
    return resources.files("telemetry").joinpath("schema.sql").read_text("utf-8")


def _execute_script(connection: sqlite3.Connection, script: str) -> None:
    """Runs a script inside the open transaction, which `executescript` would commit."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def _check(connection: sqlite3.Connection, path: Path) -> None:
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{path}: is no Talla store ({error})") from error
    if application != _APPLICATION_ID:
        raise StoreError(f"{path}: is no Talla store (another SQLite database)")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path}: was written by a newer Talla (store version {version}, this one reads"
            f" up to {SCHEMA_VERSION}); install the newer version"
        )


def _match_declarations(connection: sqlite3.Connection) -> None:
    """Makes the measurements' tables, and adds the columns of metrics declared since."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS memory (name TEXT PRIMARY KEY, content TEXT NOT NULL)"
    )
    for family in FAMILIES:
        table = f"m_{family.measurement}"
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {table} (window_id INTEGER NOT NULL,"
            " series_id INTEGER NOT NULL, texts_id INTEGER,"
            " PRIMARY KEY (window_id, series_id)) WITHOUT ROWID"
        )
        have = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for field in family.fields():
            if field not in have:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {field} INTEGER")


__all__ = ["SCHEMA_VERSION", "Store", "StoreError", "StoreReader"]
