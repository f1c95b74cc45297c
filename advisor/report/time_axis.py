"""Columns of time for pictures, and their axis in a language."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.assessment import Period
from advisor.report.band import axis
from advisor.report.language import Language

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Columns:
    """The period told, cut into columns of `step` seconds."""

    period: Period
    step: int

    @classmethod
    def of(cls, period: Period) -> Columns:
        """At most 168: an hour each over a week."""
        return cls(period, axis(period).step)

    @property
    def count(self) -> int:
        """How many columns."""
        return -(-(self.period.until - self.period.since) // self.step)

    @property
    def edges(self) -> list[float]:
        """The bounds of the columns, one more than there are columns."""
        since, until = self.period.since, self.period.until
        return [float(min(since + i * self.step, until)) for i in range(self.count + 1)]

    def place(self, time: int) -> int | None:
        """The column of a moment, None outside the period."""
        if not self.period.since <= time < self.period.until:
            return None
        return (time - self.period.since) // self.step


def reduced(
    columns: Columns,
    values: Iterable[tuple[int, float]],
    reduce: Callable[[list[float]], float],
) -> list[float | None]:
    """One value a column, of the values (time, value) in it; None where there is none."""
    parts: list[list[float]] = [[] for _ in range(columns.count)]
    for time, value in values:
        place = columns.place(time)
        if place is not None:
            parts[place].append(value)
    return [reduce(part) if part else None for part in parts]


def set_time(axes: Axes, columns: Columns, language: Language) -> None:
    """Days or hours below the picture, as the bands have them."""
    time = axis(columns.period, language.zone)
    axes.set_xlim(columns.period.since, columns.period.until)
    axes.set_xticks([tick.time for tick in time.ticks])
    axes.set_xticklabels(
        [language.day(t.time) if time.days else language.hour(t.time) for t in time.ticks],
        ha="left",
    )
