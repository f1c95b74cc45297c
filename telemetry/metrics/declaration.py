"""How a metric and a family of metrics are declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Whether a metric is a level or a count that only grows."""

    GAUGE = "gauge"
    COUNTER = "counter"


class Statistic(StrEnum):
    """What a window keeps of a metric's samples.

    The mean's field is the metric's own name; every other statistic is a suffix.
    """

    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    LAST = "last"
    COUNT = "count"
    ZERO_RATIO = "zero_ratio"
    BUSY_RATIO = "busy_ratio"


@dataclass(frozen=True, slots=True)
class Metric:
    """One quantity in base units.

    `busy_at` is the level from which a tick counts as busy; it is needed where
    `Statistic.BUSY_RATIO` is kept. `brief` are the statistics that 10-second windows alone keep:
    alerts and charts look at them, nothing that is decided on 5-minute windows does.
    """

    name: str
    unit: str
    kind: Kind
    help: str
    statistics: tuple[Statistic, ...]
    busy_at: float | None = None
    brief: tuple[Statistic, ...] = ()

    def field(self, statistic: Statistic) -> str:
        """The name under which a statistic of this metric is kept, everywhere.

        A metric that keeps only its last value or only its maximum needs no suffix for it.
        """
        if statistic is Statistic.MEAN or self.statistics == (statistic,):
            return self.name
        return f"{self.name}_{statistic.value}"

    def fields(self) -> Iterator[tuple[Statistic, str]]:
        """Each kept statistic with its field name."""
        for statistic in self.statistics:
            yield statistic, self.field(statistic)

    def reading(self, value: float) -> int | float:
        """A reading as people write it: a count of bytes or errors without a fraction."""
        return int(value) if self.unit in WHOLE_UNITS and value == int(value) else value

    def lasting(self) -> Iterator[tuple[Statistic, str]]:
        """Those of `fields` that 5-minute windows keep too."""
        return ((s, field) for s, field in self.fields() if s not in self.brief)


@dataclass(frozen=True, slots=True)
class Source:
    """Where metrics come from: the call or file, and on which cards or machines it is to be had.

    `metrics` are names, or beginnings of names that end in `*`.
    """

    metrics: tuple[str, ...]
    source: str
    where: str

    def fits(self, metric: str) -> bool:
        """Whether a metric of that name comes from here."""
        return any(
            metric.startswith(name[:-1]) if name.endswith("*") else metric == name
            for name in self.metrics
        )


@dataclass(frozen=True, slots=True)
class Family:
    """A measurement: its tags, its metrics and its text fields.

    A row of the family is identified by the measurement's name followed by one value a tag.
    `labels` are texts that are shipped as tags, for people; they never identify a row. Of
    `sources` the first that fits a metric holds.
    """

    measurement: str
    help: str
    tags: tuple[str, ...]
    metrics: tuple[Metric, ...]
    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()

    def fields(self) -> tuple[str, ...]:
        """All numeric fields of a row, in declared order, the coverage first."""
        return (COVERED_SECONDS, *(field for m in self.metrics for _, field in m.fields()))

    def scales(self) -> dict[str, float]:
        """What each field is multiplied by to be kept as a whole number; see `SCALES`."""
        scales = {COVERED_SECONDS: 100.0}
        for metric in self.metrics:
            for statistic, field in metric.fields():
                is_share = statistic in (Statistic.ZERO_RATIO, Statistic.BUSY_RATIO)
                unit = "ratio" if is_share else metric.unit
                scales[field] = 1.0 if statistic is Statistic.COUNT else SCALES[unit]
        return scales

    def source(self, metric: str) -> Source:
        """Where a metric comes from. Raises LookupError where `sources` does not say it."""
        for candidate in self.sources:
            if candidate.fits(metric):
                return candidate
        raise LookupError(f"{self.measurement} {metric}: its family names no source of it")

    def metric(self, name: str) -> Metric | None:
        """The metric of that name, if the family declares it."""
        return next((m for m in self.metrics if m.name == name), None)


COVERED_SECONDS = "covered_seconds"
"""Seconds of the window for which the row's subject answered. Every row has it."""

SCALES = {
    "ratio": 1e4,
    "bytes": 2.0**-10,
    "bytes/second": 1.0,
    "bits/second": 1e-6,
    "watts": 10.0,
    "joules": 1.0,
    "celsius": 10.0,
    "hertz": 1e-6,
    "seconds": 1e6,
    "generation": 1.0,
    "lanes": 1.0,
    "cores": 1e3,
    "tasks": 1e2,
    "gpus": 1.0,
    "rows": 1.0,
    "ticks": 1.0,
    "errors": 1.0,
    "lines": 1.0,
    "packets": 1.0,
    "tokens": 1.0,
    "windows": 1.0,
    "processes": 1e2,
    "requests": 1e2,
    "requests/second": 1e2,
    "calls/second": 1e2,
    "faults/second": 1e2,
    "pages/second": 1e2,
    "tokens/second": 1e2,
}
"""The resolution of each unit in the store: values are kept as `round(value * scale)`.

Whole numbers of a few digits take 1 to 4 bytes where a double takes 8 (decision 005).
"""

WHOLE_UNITS = frozenset(
    {"bytes", "bits/second", "hertz", "generation", "lanes", "gpus", "rows", "ticks", "errors"}
    | {"lines", "packets", "tokens", "windows", "processes", "requests"}
)
"""Units of which one reading has a whole number, however its windows' means come out."""

GAUGE = Kind.GAUGE
COUNTER = Kind.COUNTER
MEAN = (Statistic.MEAN,)
LAST = (Statistic.LAST,)
MAX = (Statistic.MAX,)
MEAN_MAX = (Statistic.MEAN, Statistic.MAX)
MEAN_MIN_MAX = (Statistic.MEAN, Statistic.MIN, Statistic.MAX)
