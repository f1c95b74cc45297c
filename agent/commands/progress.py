"""A bar that shows how far a long command came, where somebody looks."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self, TextIO

_WIDTH = 30
_EVERY = 0.1


class Progress:
    """`with Progress("simulating") as bar: bar.at(0.5)`; silent where stderr is no terminal."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self._what = what
        self._stream = stream or sys.stderr
        self._shown = self._stream.isatty()
        self._began = time.monotonic()
        self._last = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")  # leave the line clean for what follows
            self._stream.flush()

    def at(self, share: float) -> None:
        """Shows a share from 0 to 1."""
        now = time.monotonic()
        if not self._shown or now - self._last < _EVERY:
            return
        self._last = now
        share = min(1.0, max(0.0, share))
        done = round(share * _WIDTH)
        left = (now - self._began) * (1 - share) / share if share > 0.02 else None
        tail = "" if left is None else f", {left:.0f} s left"
        bar = "█" * done + "░" * (_WIDTH - done)
        self._stream.write(f"\r\x1b[K{self._what} {bar} {share:.0%}{tail}")
        self._stream.flush()
