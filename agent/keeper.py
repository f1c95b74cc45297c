"""Keeps windows and events: in the store, or in memory while the store cannot be written."""

from __future__ import annotations

import logging
import sqlite3
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from agent.shipper import Position
from telemetry.event import Event, Severity
from telemetry.store import Store, StoreError
from telemetry.window import Window

_LOG = logging.getLogger(__name__)

_MEMORY_EVENTS = 1000
_CURSORS = {"windows": "ship", "events": "ship_events", "inventories": "ship_inventories"}
_PRUNE_10S_EVERY, _PRUNE_5M_EVERY = 60.0, 3600.0
_PRUNED_AT_ONCE = 50  # small steps: a tick does not wait for a day to be deleted


class Keeper:
    """The one writer of the store, on behalf of the daemon. Raises nothing for a full disk."""

    def __init__(self, store: Store, host: str, *, memory_windows: int) -> None:
        self._store = store
        self._host = host
        self._limit = memory_windows
        self._windows: deque[Window] = deque()
        self._events: deque[Event] = deque(maxlen=_MEMORY_EVENTS)
        self._inventory: tuple[float, str, Mapping[str, Any]] | None = None
        self._memories: dict[str, str] = {}
        self._dropped = 0
        self._position = self.position()
        self._pruned_10s = self._pruned_5m = 0.0
        self.trouble: str | None = None
        """Why the store cannot be written, None while it can."""

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
            self._store.append(
                self._windows,
                events=self._events,
                inventories=[] if self._inventory is None else [self._inventory],
                memories=self._memories,
            )
        except (StoreError, sqlite3.Error) as error:
            self._failed(str(error), now)
            return False
        self._windows.clear()
        self._events.clear()
        self._inventory = None
        self._memories = {}
        if self.trouble is not None:
            self._recovered(now)
        return True

    def memory(self, name: str) -> str | None:
        """A memory that an earlier process left, None where there is none."""
        return self._store.memory(name)

    def position(self) -> Position:
        """How far shipping came, as the store has it."""
        return Position(**{part: self._store.cursor(name) for part, name in _CURSORS.items()})

    def move(self, position: Position) -> None:
        """Keeps how far shipping came, if it moved."""
        if position == self._position:
            return
        try:
            for part, name in _CURSORS.items():
                if getattr(position, part) != getattr(self._position, part):
                    self._store.move_cursor(name, getattr(position, part))
        except sqlite3.Error:
            return  # tried again at the next tick; at worst a batch is sent twice
        self._position = position

    def prune(
        self, now: float, monotonic: float, *, keep_10s_hours: float, keep_5m_days: float
    ) -> None:
        """Deletes some of what is older than it is to be kept, where it is time to look."""
        if self.trouble is not None:
            return
        try:
            if monotonic - self._pruned_10s >= _PRUNE_10S_EVERY:
                self._pruned_10s = monotonic
                self._store.prune(10, now - keep_10s_hours * 3600, limit=_PRUNED_AT_ONCE)
            # Looked at seldom: the search passes over all windows that are kept.
            if monotonic - self._pruned_5m >= _PRUNE_5M_EVERY:
                self._pruned_5m = monotonic
                self._store.prune(300, now - keep_5m_days * 86_400, limit=_PRUNED_AT_ONCE)
        except (sqlite3.Error, StoreError) as error:
            _LOG.warning("old windows cannot be deleted: %s", error)

    def close(self) -> None:
        """Lets go of the store."""
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
