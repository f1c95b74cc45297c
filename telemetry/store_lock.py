"""The lock beside a store: one process writes it."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from telemetry.store_schema import StoreBusy, StoreError, StoreUnwritable, is_unwritable


def lock_path(store: Path) -> Path:
    """The file that the writer of a store keeps locked; the writer's process id is in it."""
    return store.with_name(store.name + ".lock")


def check_folder(store: Path) -> None:
    """Raises StoreError where a store has no folder, or one that may not be looked into."""
    try:
        store.stat()
    except (FileNotFoundError, NotADirectoryError):
        if not store.parent.is_dir():
            raise StoreError(f"{store.parent}: there is no such folder for the store") from None
    except OSError as error:
        raise StoreError(f"{store}: cannot be written ({error.strerror})") from error


def take_lock(store: Path) -> int:
    """The descriptor that holds the lock until it is closed. Raises StoreError, StoreBusy."""
    check_folder(store)
    try:
        descriptor = os.open(lock_path(store), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as error:
        kind = StoreUnwritable if is_unwritable(error) else StoreError
        raise kind(f"{store}: cannot be written ({error.strerror})") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise StoreBusy(f"{store}: another process writes this store (a running agent?)") from error
    with suppress(OSError):  # a full disk: the lock holds without the writer's id
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    return descriptor
