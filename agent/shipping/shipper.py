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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from agent.shipping.delivery import Accepted, Delivery, Rejected, Retry, Split, Unauthorised
from agent.shipping.position import Position, read_position
from agent.shipping.quarantine import Quarantine
from telemetry.clock import Clock
from telemetry.event import Event, Severity
from telemetry.store import StoreError, StoreReader
from telemetry.store_schema import is_damage
from telemetry.window import Window

_LOG = logging.getLogger(__name__)

_WINDOWS_AT_ONCE = 64
_IDLE_SECONDS = 30.0  # the daemon wakes us when there is more
_MORE_SECONDS = 0.02  # between batches: another thread's turn
_BEHIND_WINDOWS = 2 * _WINDOWS_AT_ONCE  # from here on fresh windows overtake those that wait
_FRESH_WINDOWS = 8
_ONE_BY_ONE = 8
_BOUND_EVERY = 60.0
_FIRST_WINDOW_BYTES = 10_000.0  # of lines, until some were made


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
class Waits:
    """Seconds to wait after a failure: the first wait, and the longest."""

    first: float = 2.0
    longest: float = 120.0


@dataclass(frozen=True, slots=True)
class Backlog:
    """What may wait to be shipped (hours, and about so many bytes of lines), and how many lines
    of it are sent in a second at most."""

    hours: float = 720.0
    bytes: int = 1_000_000_000
    lines_per_second: float = 2_000.0


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
        position: Position | None = None,
        batch_lines: int,
        waits: Waits,
        backlog: Backlog = Backlog(),
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._path = store
        self._destination = destination
        self._quarantine = quarantine
        self._clock = clock
        self._batch_lines = batch_lines
        self._waits = waits
        self._backlog = backlog
        self._bounded_at: float | None = None
        self._window_bytes = _FIRST_WINDOW_BYTES
        self._jitter = jitter
        self._reader: StoreReader | None = None
        self._failures = 0
        self._stopping = threading.Event()
        self._fresh = threading.Event()
        self._thread: threading.Thread | None = None
        self._notices: deque[Event] = deque(maxlen=100)
        self.position = position
        """How far shipping came; None until the store was looked into."""
        self.rejected_lines_total = 0
        self.dropped_windows_total = 0
        self.backlog_windows = 0
        self._newest = 0
        self._ahead: tuple[Position, int, list[_Item]] | None = None
        self._damage: str | None = None
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

    def damage(self) -> str | None:
        """Why the store is known to be damaged, once each time that reading finds it so."""
        found, self._damage = self._damage, None
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
        started = self._clock.monotonic()
        try:
            items = self._next()
        except (StoreError, sqlite3.Error) as error:
            if is_damage(error):
                self._damage = f"{self._path}: is damaged ({error})"
            self._let_go()
            return self._failed(Retry(f"the store cannot be read: {error}"))
        if not items:
            self.backlog_windows = 0
            return _IDLE_SECONDS
        with self._preparing(items[-1][0]):
            outcome = self._send(items)
        if not isinstance(outcome, Accepted):
            self._ahead = None
            return self._failed(outcome)
        before, self.position = self.position, items[-1][0]
        self._went_well()
        if before is None or self.position.windows == before.windows or not self.position.live:
            return _MORE_SECONDS
        # A backlog: no faster than it may be.
        least = sum(len(lines) for _, _, lines in items) / self._backlog.lines_per_second
        return max(_MORE_SECONDS, least - (self._clock.monotonic() - started))

    def _send(self, items: list[_Item]) -> Delivery:
        """Sends a batch, and keeps what is refused of it."""
        refused: list[tuple[bytes, str]] = []
        for place in dict.fromkeys(place for _, place, _ in items):
            lines = [line for _, p, some in items if p == place for line in some]
            outcome = self._deliver(place, lines, refused)
            if not isinstance(outcome, Accepted):
                return outcome
        if refused:
            try:
                self._keep(refused)
            except OSError as error:
                return Retry(f"refused lines cannot be kept: {error}")
        return Accepted()

    def _open(self) -> StoreReader:
        """The store, with the position that it keeps where it is another than before."""
        if self._reader is not None and not self._reader.in_place():
            self._let_go()
        if self._reader is None:
            self._reader = StoreReader(self._path)
            if self.position is None:
                self.position = read_position(self._reader)
            elif self.position.store != self._reader.identity():
                if self.position.store:
                    self.position = read_position(self._reader)
                else:
                    self.position = replace(self.position, store=self._reader.identity())
        return self._reader

    def _next(self) -> list[_Item]:
        """What comes next; made already, where nothing new came since."""
        reader = self._open()
        assert self.position is not None
        newest = reader.last_window_id()
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[:2] == (self.position, newest):
            return ahead[2]
        at = self._placed(reader, self.position, newest)
        if (
            at.live
            and newest <= at.live
            and not reader.windows_after(at.windows, 1, through=at.live_from)
        ):  # the last of those that waited went by retention
            at = replace(at, windows=at.live, live_from=0, live=0)
        self.position = at
        self.backlog_windows = max(0, newest - at.windows - (at.live - at.live_from))
        return self._made(reader, at, newest)

    @contextmanager
    def _preparing(self, at: Position) -> Iterator[None]:
        """Makes the batch after a position while the block sends the one before it."""
        reader = self._reader
        if reader is None or self._newest - at.windows <= _WINDOWS_AT_ONCE:
            yield
            return

        def make() -> None:
            with suppress(StoreError, sqlite3.Error):  # told when it is its turn
                newest = reader.last_window_id()
                self._ahead = at, newest, self._made(reader, at, newest)

        maker = threading.Thread(target=make, name="shipper-ahead", daemon=True)
        maker.start()
        try:
            yield
        finally:
            maker.join()

    def _made(self, reader: StoreReader, at: Position, newest: int) -> list[_Item]:
        """Items after a position, up to `batch_lines` lines, a window always whole.

        Far behind, the newest windows go first, and those that wait fill the time between.
        """
        self._newest = newest
        items: list[_Item] = []
        count = 0
        events = reader.events(after_id=at.events, limit=_WINDOWS_AT_ONCE)
        inventories = reader.inventories_after(at.inventories, 8)
        fresh = 0 < at.live < newest
        if fresh:
            windows = reader.windows_after(at.live, _WINDOWS_AT_ONCE)
        else:
            windows = reader.windows_after(
                at.windows, _WINDOWS_AT_ONCE, through=at.live_from or None
            )
        for row_id, time, host, document in inventories:
            at = replace(at, inventories=row_id)
            items.append((at, *self._destination.inventory(time, host, document)))
        for row_id, event in events:
            at = replace(at, events=row_id)
            items.append((at, *self._destination.event(event)))
        made = size = 0
        for row_id, window in windows:
            if fresh:
                at = replace(at, live=row_id)
            elif at.live and row_id >= at.live_from:
                at = replace(at, windows=at.live, live_from=0, live=0)
            else:
                at = replace(at, windows=row_id)
            place, lines = self._destination.window(window)
            count += len(lines)
            if count > self._batch_lines and count > len(lines):
                break
            made, size = made + 1, size + sum(map(len, lines))
            items.append((at, place, lines))
        if made:
            self._window_bytes += 0.2 * (size / made - self._window_bytes)
        return items

    def _placed(self, reader: StoreReader, at: Position, newest: int) -> Position:
        """The position, with what waits too long left out and a place for fresh windows kept."""
        if newest - (at.live or at.windows) <= _BEHIND_WINDOWS:
            return at
        now = self._clock.monotonic()
        if self._bounded_at is None or now - self._bounded_at >= _BOUND_EVERY:
            self._bounded_at = now
            at = self._bounded(reader, at, newest)
        # After another stop those that were ahead are sent again, with all that waited since.
        first = max(at.windows, newest - _FRESH_WINDOWS)
        return replace(at, live_from=first, live=first) if first > at.windows else at

    def _bounded(self, reader: StoreReader, at: Position, newest: int) -> Position:
        oldest = max(
            at.windows, reader.first_since(self._clock.wall() - self._backlog.hours * 3600)
        )
        room = int(self._backlog.bytes / self._window_bytes)
        surplus = reader.windows_between(oldest, newest) - room
        if surplus > 0:
            oldest = reader.position_after(oldest, surplus)
        dropped = reader.windows_between(at.windows, oldest)
        if not dropped:
            return at
        self.dropped_windows_total += dropped
        text = (
            f"{dropped} windows are not shipped, they waited too long or are too many"
            f" ([influx] backlog_hours, backlog_bytes); they stay in the store"
        )
        _LOG.warning("%s", text)
        self._notice("backlog_dropped", text, Severity.WARNING)
        return replace(at, windows=oldest, live_from=0, live=0)

    def _deliver(
        self, place: str, lines: list[bytes], refused: list[tuple[bytes, str]]
    ) -> Delivery:
        """Sends lines, in halves where the server refuses them, down to the bad ones."""
        if not lines:
            return Accepted()
        answer = self._destination.send(place, lines)
        if not isinstance(answer, Rejected | Split):
            return answer
        if isinstance(answer, Rejected) and answer.lines is not None:
            refused.extend((line, answer.reason) for line in answer.lines)
            return Accepted()
        if len(lines) == 1:
            refused.append((lines[0], answer.reason))
            return Accepted()
        # In halves down to a few, and those one by one: with all of them bad that costs half.
        size = 1 if len(lines) <= _ONE_BY_ONE else (len(lines) + 1) // 2
        for first in range(0, len(lines), size):
            outcome = self._deliver(place, lines[first : first + size], refused)
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
        self._ahead = None
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


__all__ = ["Backlog", "Destination", "Shipper", "Waits"]
