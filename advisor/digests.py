"""Days of a history that was read over a network, kept in advisor.db: each is read once."""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from advisor.state import State
from telemetry.window import Frame

_FORMAT = 1
_AT_ONCE = 100


class DayDigests:
    """A day's frames by what they are of. Raises nothing: a digest that cannot be read or kept
    costs time, never an answer."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._waiting: list[tuple[str, int, int, int, bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.flush()

    def get(self, place: str, day: int, points: int) -> list[Frame] | None:
        """The frames of a day, where it is kept with that number of points."""
        try:
            found = self._state.rows(
                "SELECT content FROM digest WHERE place = ? AND day = ? AND points = ?",
                (place, day, points),
            )
            return None if not found else _unpacked(found[0][0])
        except (sqlite3.Error, zlib.error, ValueError, KeyError, TypeError):
            return None

    def put(self, place: str, day: int, points: int, frames: Sequence[Frame]) -> None:
        """Keeps a day in the place of what was known of it."""
        self._waiting.append((place, day, points, int(time.time()), _packed(frames)))
        if len(self._waiting) >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Writes what waits; a transaction for each would cost more than the reading."""
        waiting, self._waiting = self._waiting, []
        try:
            with self._state.transaction() as db:
                db.executemany("INSERT OR REPLACE INTO digest VALUES (?, ?, ?, ?, ?)", waiting)
        except sqlite3.Error:
            return

    def forget(self, before: float) -> int:
        """Deletes digests of days before a time; returns how many."""
        with self._state.transaction() as db:
            return db.execute("DELETE FROM digest WHERE day < ?", (before,)).rowcount


def _packed(frames: Sequence[Frame]) -> bytes:
    document = {"format": _FORMAT, "frames": [_frame_document(frame) for frame in frames]}
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 1)


def _frame_document(frame: Frame) -> dict[str, Any]:
    texts = list({json.dumps(t, sort_keys=True): t for t in frame.texts}.items())
    places = {text: i for i, (text, _) in enumerate(texts)}
    return {
        "key": frame.key,
        "start": frame.start,
        "seconds": _short(frame.seconds),
        "columns": {name: _short(column) for name, column in frame.columns.items()},
        "texts": [t for _, t in texts],
        "said": _short([places[json.dumps(t, sort_keys=True)] for t in frame.texts]),
    }


def _short(column: Sequence[Any]) -> Any:
    """A column that says the same throughout is kept as one cell."""
    if column and all(cell == column[0] for cell in column):
        return {"all": column[0]}
    return list(column)


def _long(column: Any, length: int) -> list[Any]:
    return [column["all"]] * length if isinstance(column, dict) else column


def _unpacked(content: bytes) -> list[Frame] | None:
    document = json.loads(zlib.decompress(content))
    if document.get("format") != _FORMAT:
        return None
    frames = []
    for one in document["frames"]:
        start: list[int] = one["start"]
        texts: list[Mapping[str, str]] = one["texts"]
        said = _long(one["said"], len(start)) if texts else []
        frames.append(
            Frame(
                tuple(one["key"]),
                start,
                _long(one["seconds"], len(start)),
                {name: _long(column, len(start)) for name, column in one["columns"].items()},
                [texts[i] for i in said],
            )
        )
    return frames


__all__ = ["DayDigests"]
