"""Runs of windows without a hole between them, and states that must last before they count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from telemetry.state import WindowState
from telemetry.window import Frame


class Candidates:
    """States that windows take only where the same one lasts long enough."""

    def __init__(self) -> None:
        self._states: dict[str, dict[int, WindowState]] = {}

    def add(self, name: str, i: int, state: WindowState) -> None:
        """Proposes a state for window `i`; windows are given in order."""
        self._states.setdefault(name, {})[i] = state

    def settle(self, frame: Frame, states: list[WindowState], seconds: Mapping[str, float]) -> None:
        """Puts those in place that last at least the `seconds` of their name."""
        for name, proposed in self._states.items():
            for run in runs(frame, proposed):
                if sum(frame.seconds[i] for i in run) >= seconds[name]:
                    for i in run:
                        states[i] = proposed[i]


def runs(frame: Frame, windows: Iterable[int]) -> Iterator[list[int]]:
    """Splits windows (in order) where another one, or a hole in time, lies between them."""
    run: list[int] = []
    for i in windows:
        if run and (i != run[-1] + 1 or _hole(frame, run[-1], i)):
            yield run
            run = []
        run.append(i)
    if run:
        yield run


def _hole(frame: Frame, before: int, after: int) -> bool:
    return frame.start[after] > frame.start[before] + 2 * frame.seconds[before]
