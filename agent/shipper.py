"""Ships what the store holds, from a place in it that outlives the process. Knows no InfluxDB.

At least once: a batch that may have arrived is sent again, and its points take their own place.
Sampling never waits for it: it runs in a thread with a connection of its own, and tells the daemon
how far it came; the daemon, the one writer, keeps that in the store.
"""

from __future__ import annotations

import logging
import random
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agent.delivery import Accepted, Delivery, Rejected, Retry, Split, Unauthorised
from agent.quarantine import Quarantine
from telemetry.clock import Clock
from telemetry.event import Event, Severity
from telemetry.store import StoreError, StoreReader
from telemetry.window import Window

_LOG = logging.getLogger(__name__)

_WINDOWS_AT_ONCE = 64
_IDLE_SECONDS = 30.0  # the daemon wakes us when there is more
_MORE_SECONDS = 0.02  # between batches of a backlog: another thread's turn


class Destination(Protocol):
    """Makes lines of what the store holds, and sends them."""

    def window(self, window: Window) -> tuple[str, list[bytes]]:
        """Where a window's lines go (a bucket, say), and the lines."""

    def event(self, event: Event) -> tuple[str, list[bytes]]:
        """The same of an event."""

    def inventory(
        self, time: float, host: str, document: Mapping[str, Any]
    ) -> tuple[str, list[bytes]]:
        """The same of an inventory."""

    def send(self, place: str, lines: Sequence[bytes]) -> Delivery:
        """Sends lines. Raises nothing."""

    def close(self) -> None:
        """Lets go of connections."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far shipping came: the last window, event and inventory that arrived."""

    windows: int = 0
    events: int = 0
    inventories: int = 0


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds to wait after a failure: the first wait, and the longest."""

    first: float = 2.0
    longest: float = 120.0


_Item = tuple[Position, str, list[bytes]]
"""The position once this has arrived, where it goes, its lines."""


class Shipper:
    """Sends batches from a position on; `step` does one, `run` goes on until `stop`."""

    def __init__(
        self,
        store: Path,
        destination: Destination,
        quarantine: Quarantine,
        clock: Clock,
        *,
        position: Position,
        batch_lines: int,
        waits: Waits,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._path = store
        self._destination = destination
        self._quarantine = quarantine
        self._clock = clock
        self._batch_lines = batch_lines
        self._waits = waits
        self._jitter = jitter
        self._reader: StoreReader | None = None
        self._failures = 0
        self._stopping = threading.Event()
        self._fresh = threading.Event()
        self._thread: threading.Thread | None = None
        self._notices: deque[Event] = deque(maxlen=100)
        self.position = position
        self.rejected_lines_total = 0
        self.backlog_windows = 0
        self.trouble: str | None = None
        """Why nothing is shipped at the moment, None while all is well."""

    # The daemon's side

    def start(self) -> None:
        """Begins to ship in a thread."""
        self._thread = threading.Thread(target=self._run, name="shipper", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Says that the store holds something new."""
        self._fresh.set()

    def stop(self, seconds: float) -> None:
        """Sends what is left, for at most so long. A request that hangs is left behind."""
        self._stopping.set()
        self._fresh.set()
        if self._thread is not None:
            self._thread.join(seconds)

    def notices(self) -> list[Event]:
        """What is to be kept as events since the last call; their host is empty."""
        found: list[Event] = []
        while self._notices:
            found.append(self._notices.popleft())
        return found

    # The thread's side

    def _run(self) -> None:
        delay = 0.0
        while not self._stopping.wait(delay):
            try:
                delay = self.step()
            except Exception as error:  # noqa: BLE001 - see the next line
                # A fault of ours must not end shipping for good, without a word.
                _LOG.debug("shipping failed", exc_info=True)
                delay = self._failed(Retry(f"{type(error).__name__}: {error}"))
            if delay == _IDLE_SECONDS:
                self._fresh.wait(delay)
                self._fresh.clear()
                delay = 0.0
        while self.trouble is None and self.step() == _MORE_SECONDS:
            pass
        self._destination.close()
        if self._reader is not None:
            self._reader.close()

    def step(self) -> float:
        """Sends one batch; returns the seconds to wait before the next."""
        try:
            items = self._batch()
        except (StoreError, sqlite3.Error) as error:
            self._let_go()
            return self._failed(Retry(f"the store cannot be read: {error}"))
        if not items:
            self.backlog_windows = 0
            return _IDLE_SECONDS
        refused: list[tuple[bytes, str]] = []
        outcome: Delivery = Accepted()
        for place in dict.fromkeys(place for _, place, _ in items):
            lines = [line for _, p, some in items if p == place for line in some]
            outcome = self._deliver(place, lines, refused)
            if not isinstance(outcome, Accepted):
                return self._failed(outcome)
        if refused:
            try:
                self._keep(refused)
            except OSError as error:
                return self._failed(Retry(f"refused lines cannot be kept: {error}"))
        self.position = items[-1][0]
        self._went_well()
        return _MORE_SECONDS

    def _batch(self) -> list[_Item]:
        """What comes next, up to `batch_lines` lines, a window always whole."""
        if self._reader is None:
            self._reader = StoreReader(self._path)
        items: list[_Item] = []
        count = 0
        at = self.position
        windows = self._reader.windows_after(at.windows, _WINDOWS_AT_ONCE)
        events = self._reader.events(after_id=at.events)[:_WINDOWS_AT_ONCE]
        inventories = self._reader.inventories_after(at.inventories, 8)
        self.backlog_windows = self._reader.last_window_id() - at.windows
        for row_id, time, host, document in inventories:
            at = Position(at.windows, at.events, row_id)
            items.append((at, *self._destination.inventory(time, host, document)))
        for row_id, event in events:
            at = Position(at.windows, row_id, at.inventories)
            items.append((at, *self._destination.event(event)))
        for row_id, window in windows:
            at = Position(row_id, at.events, at.inventories)
            place, lines = self._destination.window(window)
            count += len(lines)
            if count > self._batch_lines and count > len(lines):
                break
            items.append((at, place, lines))
        return items

    def _deliver(
        self, place: str, lines: list[bytes], refused: list[tuple[bytes, str]]
    ) -> Delivery:
        """Sends lines, in halves where the server refuses them, down to the bad ones."""
        if not lines:
            return Accepted()
        answer = self._destination.send(place, lines)
        if not isinstance(answer, Rejected | Split):
            return answer
        if len(lines) == 1:
            refused.append((lines[0], answer.reason))
            return Accepted()
        middle = len(lines) // 2
        for half in (lines[:middle], lines[middle:]):
            outcome = self._deliver(place, half, refused)
            if not isinstance(outcome, Accepted):
                return outcome
        return Accepted()

    def _keep(self, refused: list[tuple[bytes, str]]) -> None:
        file = self._quarantine.keep(refused, self._clock.wall())
        self.rejected_lines_total += len(refused)
        text = f"{len(refused)} lines refused, kept in {file}: {refused[0][1]}"
        _LOG.warning("%s", text)
        self._notice("lines_refused", text, Severity.WARNING)

    def _failed(self, outcome: Delivery) -> float:
        """Remembers why, tells it once, and says how long to wait."""
        self._failures += 1
        reason = getattr(outcome, "reason", "")
        if isinstance(outcome, Unauthorised):
            wait = self._waits.longest
            level, severity = logging.ERROR, Severity.CRITICAL
        else:
            wait = min(self._waits.longest, self._waits.first * 2 ** min(self._failures - 1, 30))
            level, severity = logging.WARNING, Severity.WARNING
        # Half of it is left to chance, so that a fleet does not come back as one.
        wait *= 0.5 + 0.5 * self._jitter()
        if isinstance(outcome, Retry) and outcome.after is not None:
            wait = max(wait, outcome.after)
        if self.trouble != reason:
            _LOG.log(level, "nothing is shipped: %s; all is kept, next try in %.0f s", reason, wait)
            if self.trouble is None:
                self._notice("shipping_stopped", reason, severity)
        self.trouble = reason
        return wait

    def _went_well(self) -> None:
        self._failures = 0
        if self.trouble is not None:
            _LOG.info("shipping again, %d windows wait", self.backlog_windows)
            self._notice("shipping_resumed", "shipping again", Severity.INFO)
            self.trouble = None

    def _notice(self, kind: str, text: str, severity: Severity) -> None:
        self._notices.append(Event(self._clock.wall(), "", kind, text, severity))

    def _let_go(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


__all__ = ["Destination", "Position", "Shipper", "Waits"]
