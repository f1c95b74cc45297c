"""The store's tables: made, checked, and brought up to what is declared today."""

from __future__ import annotations

import errno
import os
import sqlite3
from importlib import resources
from pathlib import Path

from telemetry.metrics import FAMILIES

SCHEMA_VERSION = 1
APPLICATION_ID = 0x54616C61  # "Tala"
IDENTITY = "identity"
"""The memory that tells one store from another at the same path."""

_CHECK_STEPS, _CHECK_INSTRUCTIONS = 5_000, 20_000  # some seconds on any machine


class StoreError(Exception):
    """The store cannot be used; the message is one line for the user."""


class StoreUnwritable(StoreError):
    """The disk is full, read-only or failing: it may be written again later."""


class StoreBusy(StoreError):
    """Another process writes the store."""


class StoreDamaged(StoreError):
    """The file is a store, and its content is broken."""


class Transaction:
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


def make_tables(connection: sqlite3.Connection) -> None:
    """The tables of a new store, inside the open transaction."""
    script = resources.files("telemetry").joinpath("schema.sql").read_text("utf-8")
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        # Not executescript, which would commit.
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def match_declarations(connection: sqlite3.Connection) -> None:
    """Makes tables that are newer than the store, and the columns of metrics declared since."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS memory (name TEXT PRIMARY KEY, content TEXT NOT NULL)"
    )
    connection.execute(
        "INSERT OR IGNORE INTO memory VALUES (?, ?)", (IDENTITY, os.urandom(8).hex())
    )
    connection.execute(
        "CREATE TABLE IF NOT EXISTS owner_day (host_id INTEGER NOT NULL, day INTEGER NOT NULL,"
        " gpu_uuid TEXT NOT NULL, texts TEXT NOT NULL, seconds REAL NOT NULL,"
        " memory_byte_seconds REAL NOT NULL, memory_bytes_max REAL NOT NULL,"
        " PRIMARY KEY (host_id, day, gpu_uuid, texts)) WITHOUT ROWID"
    )
    for family in FAMILIES:
        table = f"m_{family.measurement}"
        have = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        if not have:
            columns = "".join(f", {field} INTEGER" for field in family.fields())
            connection.execute(
                f"CREATE TABLE {table} (window_id INTEGER NOT NULL, series_id INTEGER NOT NULL,"
                f" texts_id INTEGER{columns}, PRIMARY KEY (window_id, series_id)) WITHOUT ROWID"
            )
            continue
        for field in family.fields():
            if field not in have:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {field} INTEGER")


def check_kind(connection: sqlite3.Connection, path: Path) -> None:
    """Raises StoreError for what is no store, or a newer one; StoreDamaged for a broken one."""
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        if is_ours(path):
            raise StoreDamaged(f"{path}: is damaged ({error})") from error
        raise StoreError(f"{path}: is no Talla store ({error})") from error
    if application != APPLICATION_ID:
        raise StoreError(f"{path}: is no Talla store (another SQLite database)")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path}: was written by a newer Talla (store version {version}, this one reads"
            f" up to {SCHEMA_VERSION}); install the newer version"
        )


def is_ours(path: Path) -> bool:
    """Whether a file that SQLite cannot read was a store: by the mark in its header
    (https://www.sqlite.org/fileformat2.html, offset 68), or a first page that is all zeros, as
    file systems leave it after a crash."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError:
        return False
    if len(head) < 100:
        return False
    return head[68:72] == APPLICATION_ID.to_bytes(4, "big") or not any(head)


def is_unwritable(error: BaseException) -> bool:
    """Whether an error is of the disk (full, read-only, failing), not of what is on it."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
    )


def is_damage(error: BaseException) -> bool:
    """Whether an error says that the file's content is broken."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def check_whole(connection: sqlite3.Connection, path: Path, *, thorough: bool) -> None:
    """Reads the newest rows, or (for some seconds at most) all pages. Raises StoreDamaged."""
    try:
        connection.execute("SELECT * FROM window ORDER BY window_id DESC LIMIT 1").fetchone()
        for family in FAMILIES:
            connection.execute(
                f"SELECT * FROM m_{family.measurement} ORDER BY window_id DESC LIMIT 1"
            ).fetchone()
        said = _all_pages(connection) if thorough else "ok"
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        said = str(error)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        said = str(error)
    if said != "ok":
        raise StoreDamaged(f"{path}: is damaged ({said})")


def _all_pages(connection: sqlite3.Connection) -> str:
    steps = 0

    def too_long() -> bool:
        nonlocal steps
        steps += 1
        return steps > _CHECK_STEPS

    connection.set_progress_handler(too_long, _CHECK_INSTRUCTIONS)
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()
        lines = str(found[0]).splitlines()
        return next((line for line in lines if not line.startswith("***")), lines[0])
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            return "ok"
        raise
    finally:
        connection.set_progress_handler(None, 0)


__all__ = [
    "APPLICATION_ID",
    "IDENTITY",
    "SCHEMA_VERSION",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreUnwritable",
    "Transaction",
    "check_kind",
    "check_whole",
    "is_damage",
    "is_ours",
    "is_unwritable",
    "make_tables",
    "match_declarations",
]
