"""Keeps windows and events: in the store, or in memory while the store cannot be written."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.shipping.position import CURSORS, Position, read_position
from telemetry.event import Event, Severity
from telemetry.store import Store, StoreDamaged, StoreError
from telemetry.store_schema import is_damage
from telemetry.window import Window

_LOG = logging.getLogger(__name__)

_MEMORY_EVENTS = 1000
_PRUNE_10S_EVERY, _PRUNE_5M_EVERY = 60.0, 3600.0
_PRUNED_AT_ONCE = 50  # small steps: a tick does not wait for a day to be deleted
_REOPEN_EVERY = 10.0
_TELL_UNSHIPPED_EVERY = 3600.0


@dataclass(frozen=True, slots=True)
class Retention:
    """How long windows and process rows are kept, and the bytes that they may take together."""

    keep_10s_hours: float
    keep_5m_days: float
    keep_process_days: float = 35.0
    most_bytes: int | None = None


class Keeper:
    """The one writer of the store, on behalf of the daemon.

    Raises nothing for a disk that is full or gone, a file that was removed or is damaged.
    """

    def __init__(
        self, store: Store | None, host: str, *, memory_windows: int, path: Path | None = None
    ) -> None:
        """Without a store, which could not be opened now, `path` says where it is to be."""
        if store is None and path is None:
            raise ValueError("neither a store nor its path")
        self._store = store
        self._path = path if store is None else store.path
        self._host = host
        self._limit = memory_windows
        self._windows: deque[Window] = deque()
        self._events: deque[Event] = deque(maxlen=_MEMORY_EVENTS)
        self._inventory: tuple[float, str, Mapping[str, Any]] | None = None
        self._memories: dict[str, str] = {}
        self.damaged_at: float | None = None
        """When the store was last found damaged, Unix seconds."""
        self._dropped = 0
        self._broken: str | None = None
        self._tried: float | None = None
        self._position = self.position()
        self._pruned_10s = self._pruned_5m = 0.0
        self._ships = False
        self._unshipped = 0
        self._unshipped_told = float("-inf")
        self.trouble: str | None = None
        """Why the store cannot be written, None while it can."""
        if store is not None:
            self._tell_recovered(store)

    @property
    def waiting(self) -> int:
        """Windows that are in memory alone."""
        return len(self._windows)

    def append(
        self,
        now: float,
        windows: Sequence[Window] = (),
        events: Sequence[Event] = (),
        inventory: Mapping[str, Any] | None = None,
        memories: Mapping[str, str] | None = None,
    ) -> bool:
        """Keeps these and what waits from before; whether the store has it all now."""
        self._windows.extend(windows)
        self._events.extend(events)
        if inventory is not None:
            self._inventory = (now, self._host, inventory)
        self._memories.update(memories or {})
        while len(self._windows) > self._limit:
            self._windows.popleft()
            self._dropped += 1
        try:
            self._opened(now).append(
                self._windows,
                events=self._events,
                inventories=[] if self._inventory is None else [self._inventory],
                memories=self._memories,
            )
        except (StoreError, sqlite3.Error, OSError) as error:
            if isinstance(error, StoreDamaged):
                self._broken = str(error)
            self._failed(str(error), now)
            return False
        self._windows.clear()
        self._events.clear()
        self._inventory = None
        self._memories = {}
        if self.trouble is not None:
            self._recovered(now)
        return True

    def _opened(self, now: float) -> Store:
        """The store, opened anew where its file is gone or damaged. Raises StoreError."""
        store = self._store
        if store is not None and self._broken is None and store.in_place():
            return store
        if self._tried is not None and 0 <= now - self._tried < _REOPEN_EVERY:
            raise StoreError(self.trouble or f"{self._path}: cannot be written")
        self._tried = now
        assert self._path is not None
        removed = store is not None and self._broken is None
        if store is not None:
            self._store = None
            if not removed:
                store.close()
            else:
                store.abandon()
                words = f"{self._path} was removed or replaced while it was written"
                _LOG.error("%s", words)
                self._events.append(
                    Event(now, self._host, "store_replaced", words, Severity.CRITICAL)
                )
        opened = Store(self._path, mend_at=now, broken=self._broken)
        self._store, self._broken, self._tried = opened, None, None
        self._tell_recovered(opened, now)
        self._position = self.position()
        return opened

    def distrust(self, reason: str) -> None:
        """Says that reading found the store damaged: it is set aside at the next append."""
        self._broken = reason

    def _tell_recovered(self, store: Store, now: float | None = None) -> None:
        if store.recovered is not None:
            _LOG.error("%s", store.recovered.text)
            self.damaged_at = time.time() if now is None else now
            self._events.append(
                Event(
                    self.damaged_at,
                    self._host,
                    "store_damaged",
                    store.recovered.text,
                    Severity.CRITICAL,
                )
            )

    def memory(self, name: str) -> str | None:
        """A memory that an earlier process left, None where there is none."""
        return None if self._store is None else self._store.memory(name)

    def position(self) -> Position:
        """How far shipping came, as the store has it."""
        return Position() if self._store is None else read_position(self._store)

    def move(self, position: Position | None) -> None:
        """Keeps how far shipping came, if it moved. One that belongs to another store, such as
        one that was removed meanwhile, is left alone."""
        self._ships = True
        if position is None or self._store is None or position == self._position:
            return
        if position.store != self._position.store:
            return
        try:
            self._store.move_cursors(
                {name: getattr(position, part) for part, name in CURSORS.items()}
            )
        except sqlite3.Error:
            return  # tried again at the next tick; at worst a batch is sent twice
        self._position = position

    def prune(self, now: float, monotonic: float, retention: Retention) -> None:
        """Deletes some of what is older than it is to be kept, where it is time to look."""
        store = self._store
        if self.trouble is not None or store is None:
            return
        gone: list[int] = []
        try:
            if monotonic - self._pruned_10s >= _PRUNE_10S_EVERY:
                self._pruned_10s = monotonic
                before = now - retention.keep_10s_hours * 3600
                gone += store.prune(10, before, limit=_PRUNED_AT_ONCE)
                gone += self._within_bytes(store, now, retention)
                store.merge_processes(
                    now - retention.keep_process_days * 86_400, limit=_PRUNED_AT_ONCE
                )
            # Looked at seldom: the search passes over all windows that are kept.
            if monotonic - self._pruned_5m >= _PRUNE_5M_EVERY:
                self._pruned_5m = monotonic
                before = now - retention.keep_5m_days * 86_400
                gone += store.prune(300, before, limit=_PRUNED_AT_ONCE)
        except (sqlite3.Error, StoreError) as error:
            if is_damage(error):
                self.distrust(f"{store.path}: is damaged ({error})")
            _LOG.warning("old windows cannot be deleted: %s", error)
        self._count_unshipped(gone, now, monotonic)

    def _within_bytes(self, store: Store, now: float, retention: Retention) -> list[int]:
        """Over the bytes that are allowed, the oldest 10-second windows go, then the others."""
        if retention.most_bytes is None or store.used_bytes() <= retention.most_bytes:
            return []
        return store.prune(10, now, limit=_PRUNED_AT_ONCE) or store.prune(
            300, now, limit=_PRUNED_AT_ONCE
        )

    def _count_unshipped(self, gone: list[int], now: float, monotonic: float) -> None:
        """Counts windows that went before they were shipped, and tells it once an hour."""
        at = self._position
        if self._ships:
            self._unshipped += sum(
                1 for i in gone if i > at.windows and not at.live_from < i <= at.live
            )
        if self._unshipped and monotonic - self._unshipped_told >= _TELL_UNSHIPPED_EVERY:
            text = f"{self._unshipped} windows were too old to be kept before they were shipped"
            self._unshipped, self._unshipped_told = 0, monotonic
            _LOG.warning("%s", text)
            self._events.append(Event(now, self._host, "backlog_dropped", text, Severity.WARNING))

    def close(self) -> None:
        """Lets go of the store."""
        if self._store is not None:
            self._store.close()

    def _failed(self, reason: str, now: float) -> None:
        if self.trouble is None:
            _LOG.error(
                "%s; windows are kept in memory, at most %d, until it can be written again",
                reason,
                self._limit,
            )
            text = f"the store cannot be written: {reason}"
            self._events.append(Event(now, self._host, "store_stopped", text, Severity.CRITICAL))
        self.trouble = reason

    def _recovered(self, now: float) -> None:
        lost = f"; {self._dropped} windows were lost meanwhile" if self._dropped else ""
        _LOG.warning("the store is written again%s", lost)
        self.trouble, self._dropped = None, 0
        self.append(
            now,
            events=[Event(now, self._host, "store_resumed", f"the store is written again{lost}")],
        )
