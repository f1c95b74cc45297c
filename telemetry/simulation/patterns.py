"""How a level behaves over time: periodic, in whole seconds, the same at every call.

In a scenario a pattern is a number or a table with one key, the kind:

    utilization_ratio = 0.95
    power_ratio = { square = { period = 20, low = 0.3, high = 0.9, duty = 0.7 } }
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Protocol


class Pattern(Protocol):
    """A level at each second; it repeats after `period` seconds."""

    @property
    def period(self) -> int:
        """Whole seconds, 1 for what never changes."""

    def at(self, second: int) -> float:
        """The level in the second that begins at `second`."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same."""

    level: float
    period: int = 1

    def at(self, second: int) -> float:  # noqa: ARG002  the protocol's argument
        return self.level


@dataclass(frozen=True, slots=True)
class Square:
    """`high` for the first `duty` of each period (to the second), then `low`."""

    period: int
    low: float
    high: float
    duty: float = 0.5
    offset: int = 0

    def at(self, second: int) -> float:
        inside = (second + self.offset) % self.period < round(self.period * self.duty)
        return self.high if inside else self.low


@dataclass(frozen=True, slots=True)
class Sine:
    """Swings between `low` and `high`."""

    period: int
    low: float
    high: float
    offset: int = 0

    def at(self, second: int) -> float:
        angle = 2 * math.pi * ((second + self.offset) % self.period) / self.period
        return self.low + (self.high - self.low) * 0.5 * (1 + math.sin(angle))


@dataclass(frozen=True, slots=True)
class Ramp:
    """Rises from `low` to `high` in each period."""

    period: int
    low: float
    high: float
    offset: int = 0

    def at(self, second: int) -> float:
        return self.low + (self.high - self.low) * ((second + self.offset) % self.period) / (
            self.period
        )


@dataclass(frozen=True)
class Noise:
    """A level between `low` and `high` for each second, drawn once from `seed`."""

    period: int
    low: float
    high: float
    seed: int = 0

    @cached_property
    def _levels(self) -> tuple[float, ...]:
        span = self.high - self.low
        return tuple(
            self.low + span * share(f"{self.seed}:{second}") for second in range(self.period)
        )

    def at(self, second: int) -> float:
        return self._levels[second % self.period]


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Straight lines between `points` (second, level), held after the last until the period."""

    period: int
    points: tuple[tuple[int, float], ...]

    def at(self, second: int) -> float:
        inside = second % self.period
        before, level = self.points[0]
        for point, value in self.points:
            if point > inside:
                return level + (value - level) * (inside - before) / (point - before)
            before, level = point, value
        return level


def share(text: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) / 2**32


def parse_pattern(value: Any) -> Pattern:
    """A pattern from its TOML value. Raises ValueError that says what is expected."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Constant(float(value))
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f"a number, or a table with one of {', '.join(KINDS)}")
    kind, options = next(iter(value.items()))
    if kind not in KINDS or not isinstance(options, dict):
        raise ValueError(f"a number, or a table with one of {', '.join(KINDS)}")
    make, needed, allowed = KINDS[kind]
    for key in needed:
        if key not in options:
            raise ValueError(f"{kind} with {', '.join(needed)}; {key} is missing")
    for key, option in options.items():
        if key not in (*needed, *allowed):
            raise ValueError(f"{kind} with {', '.join((*needed, *allowed))}; {key} is unknown")
        if key != "points" and (isinstance(option, bool) or not isinstance(option, int | float)):
            raise ValueError(f"a number as {key} of {kind}")
        if key in ("period", "offset", "seed") and not isinstance(option, int):
            raise ValueError(f"whole seconds as {key} of {kind}")
    if options["period"] < 1:
        raise ValueError(f"a period of at least one second in {kind}")
    return make(options)


def _piecewise(options: Mapping[str, Any]) -> Piecewise:
    points = options["points"]
    expected = "points as [[second, level], ...], the first at second 0, in order of time"
    if not isinstance(points, list) or not points:
        raise ValueError(expected)
    for point in points:
        if (
            not isinstance(point, list)
            or len(point) != 2
            or not isinstance(point[0], int)
            or not isinstance(point[1], int | float)
        ):
            raise ValueError(expected)
    seconds = [point[0] for point in points]
    if seconds[0] != 0 or any(b <= a for a, b in pairwise(seconds)):
        raise ValueError(expected)
    if seconds[-1] >= options["period"]:
        raise ValueError("the last point before the end of the period")
    return Piecewise(options["period"], tuple((p[0], float(p[1])) for p in points))


_Kind = tuple[Callable[[Mapping[str, Any]], Pattern], tuple[str, ...], tuple[str, ...]]
_WAVE = ("period", "low", "high")
KINDS: Mapping[str, _Kind] = {
    "square": (lambda o: Square(**o), _WAVE, ("duty", "offset")),
    "sine": (lambda o: Sine(**o), _WAVE, ("offset",)),
    "ramp": (lambda o: Ramp(**o), _WAVE, ("offset",)),
    "noise": (lambda o: Noise(**o), _WAVE, ("seed",)),
    "piecewise": (_piecewise, ("period", "points"), ()),
}
