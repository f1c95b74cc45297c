"""Samples, windows and frames: the shapes in which telemetry travels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Key = tuple[str, ...]
"""What a row is about: the measurement, then one value for each tag of its family."""

TIERS = (10, 300)
"""Nominal lengths of windows in seconds: for alerts and zoom, and for all that is decided."""


@dataclass(slots=True)
class Sample:
    """What was read at one instant.

    `time` is Unix time in seconds; `rows` hold metrics by name in base units; what could not be
    read is not there. `seconds` is how long the sample stands for.
    """

    time: float
    rows: dict[Key, dict[str, float]]
    texts: dict[Key, dict[str, str]] = field(default_factory=dict)
    seconds: float = 1.0


@dataclass(slots=True)
class Row:
    """One subject in one window: numeric fields by name, and texts."""

    values: dict[str, float]
    texts: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Window:
    """All subjects of one host over [start, start + seconds).

    `start` is Unix time in whole seconds, `tier` the nominal length (10 or 300); `seconds` is
    shorter where sampling began or ended within it.
    """

    host: str
    tier: int
    start: int
    seconds: int
    rows: dict[Key, Row]

    @property
    def end(self) -> int:
        """The first second that is no longer in the window."""
        return self.start + self.seconds


@dataclass(slots=True)
class Frame:
    """The windows of one subject as columns of equal length, in order of time.

    A cell is None where the window did not have the field. `texts` has one mapping a window.
    """

    key: Key
    start: list[int] = field(default_factory=list)
    seconds: list[int] = field(default_factory=list)
    columns: dict[str, list[float | None]] = field(default_factory=dict)
    texts: list[Mapping[str, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.start)

    def row(self, i: int) -> dict[str, float]:
        """The fields that window `i` has."""
        return {n: v for n, c in self.columns.items() if (v := c[i]) is not None}
