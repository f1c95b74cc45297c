"""Slices become windows, as the agent would have made them from the same readings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from advisor.importers.recording import Recording
from telemetry.metrics import COVERED_SECONDS, FAMILIES, Metric, Statistic
from telemetry.signals import Marker, Signals
from telemetry.window import Key, Row, Sample, Window

MEAN_STEP = 60.0
"""Rows of a minute or more are means, and fill the 5-minute tier alone (design)."""

_STATISTICS = {f.measurement: {n: s for m in f.metrics for s, n in m.fields()} for f in FAMILIES}
_METRICS = {f.measurement: {m.name: m for m in f.metrics} for f in FAMILIES}


def is_aggregate(recording: Recording) -> bool:
    """Whether the log holds statistics beside means: its rows are windows already."""
    return any(
        name == COVERED_SECONDS or name not in _METRICS[measurement]
        for track in recording.tracks.values()
        for measurement, name in track.values
        if measurement
    )


def split(samples: Iterator[Sample], origin: int, length: int) -> Iterator[Sample]:
    """Cuts samples where windows of `length` seconds, counted from `origin`, begin.

    Rows are shared, so that a sample that is cut must not be changed in place.
    """
    for sample in samples:
        time, end = sample.time, sample.time + sample.seconds
        while True:
            boundary = (math.floor((time - origin) / length) + 1) * length + origin
            until = min(end, boundary)
            part = (until - time) / sample.seconds if sample.seconds else 1.0
            rows = {k: share_of(k, v, part) for k, v in sample.rows.items()}
            yield Sample(time, rows, sample.texts, until - time)
            if end - until < 1e-6:  # what rounding leaves is no time
                break
            time = until


def share_of(key: Key, values: dict[str, float], share: float) -> dict[str, float]:
    """The fields of a part of a row: what adds up over time is divided, the rest stays."""
    if share >= 1.0:
        return dict(values)
    statistics = _STATISTICS[key[0]]
    return {
        n: v * share if n == COVERED_SECONDS or statistics.get(n) is Statistic.COUNT else v
        for n, v in values.items()
    }


class _Field:
    """One statistic of one metric while a window is filled."""

    __slots__ = ("total", "weight")

    def __init__(self) -> None:
        self.total = 0.0
        self.weight = 0.0

    def add(self, statistic: Statistic | None, value: float, seconds: float) -> None:
        if self.weight == 0.0:
            self.total, self.weight = value, seconds
            return
        match statistic:
            case Statistic.MIN:
                self.total = min(self.total, value)
            case Statistic.MAX:
                self.total = max(self.total, value)
            case Statistic.LAST:
                self.total = value
            case Statistic.COUNT | None:
                self.total += value
            case _:
                weight = self.weight + seconds
                self.total += (value - self.total) * seconds / weight
                self.weight = weight


@dataclass(slots=True)
class _Open:
    start: int
    first: float
    last: float
    fields: dict[Key, dict[str, _Field]]
    covered: dict[Key, float]
    texts: dict[Key, dict[str, str]]


class Combiner:
    """Joins rows that are means, or hold statistics of their own, into windows of one tier.

    Only statistics that the rows have are kept: the largest of several means is no maximum, and
    the advisor tells by its absence that they were means. `whole` takes each slice as one window.
    `instants` says that the rows are short enough to be readings: their statistics follow then.
    """

    def __init__(
        self,
        host: str,
        tier: int,
        origin: int,
        *,
        signals: Signals | None,
        whole: bool = False,
        instants: bool = False,
    ) -> None:
        self._host = host
        self._tier = tier
        self._origin = origin
        self._marker = None if signals is None else Marker(signals)
        self._whole = whole
        self._instants = instants
        self._open: _Open | None = None

    def add(self, sample: Sample) -> Iterator[Window]:
        """Takes a slice that lies within one window; gives the window that it closed."""
        start = self._origin + math.floor((sample.time - self._origin) / self._tier) * self._tier
        if self._whole:
            start = math.floor(sample.time)
        window = self._open
        if window is not None and (self._whole or window.start != start):
            yield self._window(window)
            window = None
        if window is None:
            window = self._open = _Open(start, sample.time, sample.time, {}, {}, {})
        window.last = max(window.last, sample.time + sample.seconds)
        told = {key: dict(values) for key, values in sample.rows.items()}
        if self._marker is not None:
            self._marker.mark(sample)
        for key, values in sample.rows.items():
            values.update(told[key])  # what the log says itself goes before what we derive
            self._add(window, key, values, sample.seconds)
        for key, texts in sample.texts.items():
            window.texts.setdefault(key, {}).update(texts)
            if key[0] == "gpu_process":
                window.covered[key] = window.covered.get(key, 0.0) + sample.seconds

    def flush(self) -> Iterator[Window]:
        """Closes the last window."""
        if self._open is not None:
            yield self._window(self._open)
            self._open = None

    def _add(self, window: _Open, key: Key, values: dict[str, float], seconds: float) -> None:
        if self._instants:
            for name in [n for n in values if n in _METRICS[key[0]]]:
                _derive(_METRICS[key[0]][name], values)
        covered = values.pop(COVERED_SECONDS, seconds if values else 0.0)
        window.covered[key] = window.covered.get(key, 0.0) + covered
        fields = window.fields.setdefault(key, {})
        statistics = _STATISTICS[key[0]]
        weight = max(covered, 1e-9)
        for name, value in values.items():
            field = fields.get(name)
            if field is None:
                field = fields[name] = _Field()
            field.add(statistics[name], value, weight)

    def _window(self, window: _Open) -> Window:
        start, end = window.start, window.start + self._tier
        if self._whole or window.first >= start + 2:
            start = math.floor(window.first)
        if self._whole or window.last <= end - 2:
            end = math.ceil(window.last)
        rows: dict[Key, Row] = {}
        for key in dict.fromkeys((*window.fields, *window.texts)):
            values = {COVERED_SECONDS: window.covered.get(key, 0.0)}
            values.update((n, f.total) for n, f in window.fields.get(key, {}).items())
            rows[key] = Row(values, window.texts.get(key, {}))
        return Window(self._host, self._tier, start, max(1, end - start), rows)


def _derive(metric: Metric, values: dict[str, float]) -> None:
    """The statistics of one reading, where the row does not give them."""
    value = values[metric.name]
    for statistic, name in metric.fields():
        if name in values:
            continue
        match statistic:
            case Statistic.COUNT:
                values[name] = 1.0
            case Statistic.ZERO_RATIO:
                values[name] = 1.0 if value == 0.0 else 0.0
            case Statistic.BUSY_RATIO:
                values[name] = 1.0 if value >= (metric.busy_at or 0.0) else 0.0
            case _:
                values[name] = value
