"""Days of a history that was read over a network, kept in advisor.db: each is read once."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
import zlib
from array import array
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from advisor.state import State
from telemetry.window import Frame

_FORMAT = 1
_AT_ONCE = 100
_KEPT_SECONDS = 90 * 86_400.0  # nobody looks back as far each week


class DayDigests:
    """A day's frames by what they are of. Raises nothing: a digest that cannot be read or kept
    costs time, never an answer."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._waiting: list[tuple[str, int, int, int, bytes]] = []

    def __enter__(self) -> Self:
        self.forget(time.time() - _KEPT_SECONDS)
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
        """Deletes digests that were made before a time; returns how many."""
        try:
            with self._state.transaction() as db:
                return db.execute("DELETE FROM digest WHERE made < ?", (before,)).rowcount
        except sqlite3.Error:
            return 0


def _packed(frames: Sequence[Frame]) -> bytes:
    """A JSON head, its length before it, and the columns of numbers as they lie in memory."""
    blobs: list[bytes] = []
    head = {
        "format": _FORMAT,
        "order": sys.byteorder,
        "frames": [_frame_head(frame, blobs) for frame in frames],
        "sizes": [len(blob) for blob in blobs],
    }
    text = json.dumps(head, separators=(",", ":")).encode()
    return zlib.compress(b"".join((len(text).to_bytes(8, "big"), text, *blobs)), 1)


def _frame_head(frame: Frame, blobs: list[bytes]) -> dict[str, Any]:
    texts: dict[int, int] = {}
    said = [texts.setdefault(id(t), len(texts)) for t in frame.texts]
    first = {place: t for t, place in zip(reversed(frame.texts), reversed(said), strict=True)}
    return {
        "key": frame.key,
        "start": _column(frame.start, blobs),
        "seconds": _column(frame.seconds, blobs),
        "columns": {n: _column(column, blobs) for n, column in frame.columns.items()},
        "texts": [first[place] for place in range(len(texts))],
        "said": _column(said, blobs),
    }


def _column(column: Sequence[float | None], blobs: list[bytes]) -> dict[str, Any]:
    """Where a column lies: one cell for all, or numbers, with a mark for each that is there."""
    if not column:
        return {"all": None, "count": 0}
    if column.count(column[0]) == len(column):
        return {"all": column[0], "count": len(column)}
    there = None
    if None in column:
        there = len(blobs)
        blobs.append(bytes(cell is not None for cell in column))
    blobs.append(array("d", [0.0 if cell is None else cell for cell in column]).tobytes())
    return {"at": len(blobs) - 1, "there": there}


def _unpacked(content: bytes) -> list[Frame] | None:
    whole = zlib.decompress(content)
    length = 8 + int.from_bytes(whole[:8], "big")
    head = json.loads(whole[8:length])
    if head.get("format") != _FORMAT or head["order"] != sys.byteorder:
        return None
    blobs: list[bytes] = []
    for size in head["sizes"]:
        blobs.append(whole[length : length + size])
        length += size
    frames = []
    for one in head["frames"]:
        texts: list[Mapping[str, str]] = one["texts"]
        frames.append(
            Frame(
                tuple(one["key"]),
                _whole(one["start"], blobs),
                _whole(one["seconds"], blobs),
                {name: _cells(column, blobs) for name, column in one["columns"].items()},
                [texts[i] for i in _whole(one["said"], blobs)],
            )
        )
    return frames


def _cells(column: Mapping[str, Any], blobs: Sequence[bytes]) -> list[float | None]:
    if "all" in column:
        return [column["all"]] * int(column["count"])
    numbers = array("d")
    numbers.frombytes(blobs[column["at"]])
    if column["there"] is None:
        return list(numbers)
    marks = blobs[column["there"]]
    return [n if there else None for n, there in zip(numbers, marks, strict=True)]


def _whole(column: Mapping[str, Any], blobs: Sequence[bytes]) -> list[int]:
    return [int(cell) for cell in _cells(column, blobs) if cell is not None]


__all__ = ["DayDigests"]
