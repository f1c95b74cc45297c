"""The embedded store: windows, events, inventories and cursors in one SQLite file.

One process writes (it holds a lock beside the file); any number of readers, of any user who may
read the file, look on while it writes and after it has stopped.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from telemetry.closed import Closed
from telemetry.event import Event
from telemetry.store_events import insert_event, read_events
from telemetry.store_lock import take_lock
from telemetry.store_recovery import Recovered, recover, set_aside
from telemetry.store_rows import OwnerDay, Rows
from telemetry.store_schema import (
    IDENTITY,
    SCHEMA_VERSION,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreUnwritable,
    Transaction,
    check_kind,
    check_whole,
    is_damage,
    is_unwritable,
    make_tables,
    match_declarations,
)
from telemetry.window import Frame, Window


class StoreReader(Closed):
    """Reads a store, also while an agent of another user writes it."""

    def __init__(self, path: str | Path) -> None:
        """Raises StoreError if the file is absent, unreadable, no store, or of a newer version."""
        self.path = Path(path)
        try:
            self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(
                f"{path}: there is no store here; has the agent run, or is the path right?"
            ) from None
        except OSError as error:
            raise StoreError(f"{path}: cannot be read ({error.strerror})") from error
        self._connection = self._connect()
        check_kind(self._connection, self.path)
        self._rows = Rows(self._connection)

    def in_place(self) -> bool:
        """Whether the path still leads to the file that is open, and all of it can be seen."""
        try:
            found = self.path.stat()
        except OSError:
            return False
        if self._immutable and self.path.with_name(self.path.name + "-wal").exists():
            return False
        return (found.st_dev, found.st_ino) == self._file

    def identity(self) -> str:
        """What tells this store from another that lay, or will lie, at its path."""
        return self.memory(IDENTITY) or ""

    def _connect(self) -> sqlite3.Connection:
        # A WAL database that was closed cleanly has no -wal file, and a reader that may not write
        # the folder can open it only as immutable.
        wal = self.path.with_name(self.path.name + "-wal")
        self._immutable = not wal.exists()
        immutable = "&immutable=1" if self._immutable else ""
        uri = f"{self.path.absolute().as_uri()}?mode=ro{immutable}"
        try:
            connection = sqlite3.connect(uri, uri=True, timeout=10.0, check_same_thread=False)
            connection.execute("SELECT 1 FROM sqlite_master")
            self._file = _file(self.path)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path}: cannot be read as a store ({error})") from error
        return connection

    def close(self) -> None:
        """Lets go of the file."""
        self._connection.close()

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

    def windows_after(
        self, position: int, limit: int, *, through: int | None = None
    ) -> list[tuple[int, Window]]:
        """Up to `limit` whole windows committed after a cursor's position, with theirs; none
        after the position `through`."""
        return self._rows.windows_after(position, limit, through)

    def windows_between(self, position: int, through: int) -> int:
        """How many windows lie after a position, up to another."""
        return self._rows.windows_between(position, through)

    def position_after(self, position: int, count: int) -> int:
        """Where one is `count` windows after a position."""
        return self._rows.position_after(position, count)

    def first_since(self, time: float) -> int:
        """The position before the oldest window that ended after a time."""
        return self._rows.first_since(time)

    def owner_days(self, host: str, *, since: float, until: float) -> list[OwnerDay]:
        """Who used the GPUs on the days whose process rows were merged."""
        return self._rows.owner_days(host, since, until)

    def last_window_id(self) -> int:
        """The position of the newest window, 0 where there are none."""
        return self._rows.last_window_id()

    def events(
        self,
        host: str | None = None,
        *,
        since: float = 0.0,
        until: float = 1e12,
        after_id: int = 0,
        limit: int = -1,
    ) -> list[tuple[int, Event]]:
        """Events in order of commit, with the position of each; a negative limit is none."""
        return read_events(self._connection, host, (since, until), after_id, limit)

    def inventory(self, host: str) -> dict[str, Any] | None:
        """The newest inventory of a host, as the JSON object of `telemetry.inventory`."""
        row = self._connection.execute(
            "SELECT document FROM inventory JOIN host USING (host_id) WHERE name = ?"
            " ORDER BY inventory_id DESC LIMIT 1",
            (host,),
        ).fetchone()
        return None if row is None else json.loads(row[0])

    def inventories(self, host: str, *, until: float) -> list[tuple[float, dict[str, Any]]]:
        """The inventories of a host that held before a time, each with the time it holds from,
        oldest first."""
        rows = self._connection.execute(
            "SELECT time, document FROM inventory JOIN host USING (host_id)"
            " WHERE name = ? AND time < ? ORDER BY time, inventory_id",
            (host, until),
        )
        return [(time, json.loads(document)) for time, document in rows]

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

    def __init__(
        self, path: str | Path, *, mend_at: float | None = None, broken: str | None = None
    ) -> None:
        """Opens or creates the store. Raises StoreError, leaving the file as it was.

        With `mend_at`, the wall time, a damaged file is set aside instead of refused, and a new
        one begun with what could be read of it; `recovered` then says so. `broken` says why it
        is known to be damaged already.
        """
        self.path = Path(path)
        self.recovered: Recovered | None = None
        self._immutable = False
        self._log: tuple[int, int] | None = None
        self._lock = take_lock(self.path)
        try:
            try:
                if broken is not None and self.path.exists():
                    raise StoreDamaged(broken)
                self._connection = self._open()
            except StoreDamaged as error:
                if mend_at is None:
                    raise
                self._connection = self._mend(str(error), mend_at)
            self._file = _file(self.path)
            with suppress(OSError):
                self._log = _file(self.path.with_name(self.path.name + "-wal"))
        except BaseException:
            os.close(self._lock)
            raise
        self._rows = Rows(self._connection)

    def _open(self) -> sqlite3.Connection:
        new = not self.path.exists() or self.path.stat().st_size == 0
        wal = self.path.with_name(self.path.name + "-wal")
        clean = not wal.exists() or wal.stat().st_size == 0
        connection: sqlite3.Connection | None = None
        try:
            if not new:
                # A look before anything is changed: opening WAL mode would already write.
                uri = f"{self.path.absolute().as_uri()}?mode=ro"
                with closing(sqlite3.connect(uri, uri=True)) as look:
                    check_kind(look, self.path)
            else:
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640))
            connection = sqlite3.connect(
                self.path.absolute().as_uri(),
                uri=True,
                timeout=10.0,
                isolation_level=None,
                check_same_thread=False,
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA cache_size = -1024")
            connection.execute("PRAGMA wal_autocheckpoint = 500")
            with Transaction(connection):
                if new:
                    make_tables(connection)
                match_declarations(connection)
            if not new:
                check_whole(connection, self.path, thorough=not clean)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, sqlite3.Error | OSError):
                raise self._error(error, "cannot be written as a store") from error
            raise
        return connection

    def _error(self, error: sqlite3.Error | OSError, what: str) -> StoreError:
        if is_damage(error):
            return StoreDamaged(f"{self.path}: is damaged ({error})")
        kind = StoreUnwritable if is_unwritable(error) else StoreError
        return kind(f"{self.path}: {what} ({error})")

    def _mend(self, reason: str, now: float) -> sqlite3.Connection:
        try:
            aside = set_aside(self.path, now)
        except OSError as error:
            raise StoreError(f"{reason}; it cannot be set aside ({error.strerror})") from error
        connection = self._open()
        try:
            words = reason.partition(" (")[2].removesuffix(")") or reason
            self.recovered = recover(connection, aside, words)
        except sqlite3.Error as error:
            connection.close()
            raise self._error(error, "cannot be written as a store") from error
        return connection

    def close(self) -> None:
        super().close()
        with suppress(OSError):
            os.close(self._lock)

    def abandon(self) -> None:
        """Lets go of a file that was removed or replaced, with the log that it left at the path:
        it would be replayed into whatever lies there now."""
        log = self.path.with_name(self.path.name + "-wal")
        with suppress(OSError):
            if _file(log) == self._log:
                log.unlink()
        self.close()

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
            with Transaction(self._connection):
                for window in windows:
                    self._rows.insert(window)
                for event in events:
                    insert_event(self._connection, self._rows.host_id(event.host), event)
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
            raise self._error(error, "cannot be written") from error

    def move_cursor(self, name: str, position: int) -> None:
        """Sets a cursor's position, durably."""
        self.move_cursors({name: position})

    def move_cursors(self, positions: Mapping[str, int]) -> None:
        """Sets the positions of several cursors together, durably."""
        with Transaction(self._connection):
            self._connection.executemany(
                "INSERT INTO cursor VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET position = excluded.position",
                list(positions.items()),
            )

    def prune(self, tier: int, before: float, *, limit: int = 200) -> list[int]:
        """Deletes up to `limit` windows of a tier that ended before a time; returns their
        positions."""
        with Transaction(self._connection):
            return self._rows.prune(tier, before, limit)

    def merge_processes(self, before: float, *, limit: int = 50) -> int:
        """Merges the process rows of up to `limit` 5-minute windows that ended before a time into
        one row an owner, GPU and day (`owner_days`); returns how many windows were looked at."""
        with Transaction(self._connection):
            return self._rows.merge_processes(before, limit)

    def used_bytes(self) -> int:
        """What the store's content takes; pages that were freed are used again."""
        pages, free, size = (
            int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size


def _file(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


__all__ = [
    "SCHEMA_VERSION",
    "OwnerDay",
    "Recovered",
    "Store",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreReader",
    "StoreUnwritable",
]
