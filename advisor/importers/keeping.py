"""Imported windows are joined with what the store already has of their host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from telemetry.metrics import FAMILIES
from telemetry.store import Store
from telemetry.window import TIERS, Key, Row, Window

_SCALES = {f.measurement: f.scales() for f in FAMILIES}
_BATCH = 500
_LONG = TIERS[-1]


@dataclass(slots=True)
class Kept:
    """What became of the windows of an import, and where the last of them ends (Unix time)."""

    until: int = 0
    new: int = 0
    same: int = 0
    refused: list[Window] = field(default_factory=list)


class Existing:
    """The windows that the store has of a host within [since, until)."""

    def __init__(self, store: Store, host: str, since: float, until: float) -> None:
        self._windows: dict[tuple[int, int], Window] = {}
        self.first = store.span(host, _LONG)
        if self.first is None or self.first[1] <= since or self.first[0] >= until:
            return
        position = 0
        while batch := store.windows_after(position, _BATCH):
            for position, window in batch:  # noqa: B007 - the last position is the next start
                if window.host == host and window.end > since and window.start < until:
                    self._windows[window.tier, window.start] = window

    def origin(self, first: int) -> int:
        """Where windows are counted from: as those that are there, else the first row."""
        for (tier, start), window in self._windows.items():
            if tier == _LONG and window.seconds == _LONG:
                return start
        long = [start for tier, start in self._windows if tier == _LONG]
        return min(long) if long else first

    def join(self, window: Window) -> Window | None:
        """The window with the rows of the one in its place; None where it cuts into another."""
        old = self._windows.get((window.tier, window.start))
        if old is not None:
            seconds = max(old.seconds, window.seconds)
            rows = {**old.rows, **window.rows}
            return Window(window.host, window.tier, window.start, seconds, rows)
        for start in range(window.start - window.tier + 1, window.end):
            other = self._windows.get((window.tier, start))
            if other is not None and other.end > window.start:
                return None
        return window

    def has(self, window: Window) -> bool:
        """Whether exactly this window is there, at the store's resolution."""
        return self._windows.get((window.tier, window.start)) == _at_resolution(window)


def _at_resolution(window: Window) -> Window:
    """The window as it comes back from a store."""
    rows: dict[Key, Row] = {}
    for key, row in window.rows.items():
        scales = _SCALES[key[0]]
        rows[key] = Row(
            {n: round(v * scales[n]) / scales[n] for n, v in row.values.items()}, row.texts
        )
    return Window(window.host, window.tier, window.start, window.seconds, rows)


def keep(store: Store, existing: Existing, windows: Iterable[Window]) -> Kept:
    """Commits windows in batches. Raises StoreError where the store cannot be written."""
    kept = Kept()

    def fresh() -> Iterator[Window]:
        for window in windows:
            kept.until = max(kept.until, window.end)
            joined = existing.join(window)
            if joined is None:
                kept.refused.append(window)
            elif existing.has(joined):
                kept.same += 1
            else:
                kept.new += 1
                yield joined

    batch: list[Window] = []
    for window in fresh():
        batch.append(window)
        if len(batch) >= _BATCH:
            store.append(batch)
            batch = []
    store.append(batch)
    return kept
