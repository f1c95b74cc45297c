"""Samples become windows of both tiers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from telemetry.composite import add_composites
from telemetry.metrics import COVERED_SECONDS, FAMILIES, Family, Metric, Statistic
from telemetry.signals import Marker, Signals
from telemetry.window import TIERS, Key, Row, Sample, Window


class _Stat:
    """The running statistics of one metric of one subject."""

    __slots__ = ("busy", "count", "last", "maximum", "minimum", "total", "weight", "zeros")

    def __init__(self) -> None:
        self.count = 0
        self.weight = 0.0
        self.total = 0.0
        self.minimum = math.inf
        self.maximum = -math.inf
        self.last = 0.0
        self.zeros = 0.0
        self.busy = 0.0

    def extend(self, values: Sequence[float], seconds: float, kept: _Kept) -> None:
        n = len(values)
        self.count += n
        self.last = values[-1]
        if kept.shares:
            self.weight += n * seconds
            self.total += sum(values) * seconds
        if kept.most and (most := max(values)) > self.maximum:
            self.maximum = most
        if kept.least and (least := min(values)) < self.minimum:
            self.minimum = least
        busy_at = kept.busy_at
        if busy_at is not None:
            self.busy += seconds * sum(1 for v in values if v >= busy_at)
            self.zeros += seconds * values.count(0.0)

    def merge(self, other: _Stat) -> None:
        self.count += other.count
        self.weight += other.weight
        self.total += other.total
        if other.minimum < self.minimum:
            self.minimum = other.minimum
        if other.maximum > self.maximum:
            self.maximum = other.maximum
        self.last = other.last
        self.zeros += other.zeros
        self.busy += other.busy


_VALUES: dict[Statistic, Callable[[_Stat], float]] = {
    Statistic.MEAN: lambda stat: stat.total / stat.weight,
    Statistic.MIN: lambda stat: stat.minimum,
    Statistic.MAX: lambda stat: stat.maximum,
    Statistic.LAST: lambda stat: stat.last,
    Statistic.COUNT: lambda stat: float(stat.count),
    Statistic.ZERO_RATIO: lambda stat: stat.zeros / stat.weight,
    Statistic.BUSY_RATIO: lambda stat: stat.busy / stat.weight,
}


_SHARES = frozenset({Statistic.MEAN, Statistic.ZERO_RATIO, Statistic.BUSY_RATIO})


class _Kept:
    """What is kept of a metric: its fields, each with how it comes from the statistics."""

    __slots__ = ("all", "busy_at", "lasting", "least", "most", "newest", "shares")

    def __init__(self, metric: Metric) -> None:
        self.busy_at = metric.busy_at
        self.least = Statistic.MIN in metric.statistics
        self.most = Statistic.MAX in metric.statistics
        self.newest = set(metric.statistics) == {Statistic.LAST}
        self.shares = not _SHARES.isdisjoint(metric.statistics)
        self.all = tuple((field, _VALUES[statistic]) for statistic, field in metric.fields())
        self.lasting = tuple((field, _VALUES[s]) for s, field in metric.lasting())


class _Subject:
    """What one subject (a GPU, a disk, the host) did within a bucket."""

    __slots__ = ("covered", "metrics", "stats", "texts", "waiting")

    def __init__(self, metrics: dict[str, _Kept]) -> None:
        self.metrics = metrics
        self.waiting: list[dict[str, float]] = []
        self.stats: dict[str, _Stat] = {}
        self.texts: dict[str, str] = {}
        self.covered = 0.0

    def add(self, values: dict[str, float], seconds: float) -> None:
        if values:
            self.covered += seconds
            self.waiting.append(values)

    def settle(self, seconds: float) -> None:
        """Counts what waits, a metric at a time."""
        waiting, self.waiting = self.waiting, []
        for name in dict.fromkeys(chain.from_iterable(waiting)):
            kept = self.metrics.get(name)
            if kept is None:
                continue
            stat = self.stats.get(name)
            if stat is None:
                stat = self.stats[name] = _Stat()
            if kept.newest and name in waiting[-1]:
                stat.last = waiting[-1][name]
                continue
            values = [row[name] for row in waiting if name in row]
            stat.extend(values, seconds, kept)

    def merge(self, other: _Subject) -> None:
        self.covered += other.covered
        self.texts.update(other.texts)
        for name, stat in other.stats.items():
            mine = self.stats.get(name)
            if mine is None:
                mine = self.stats[name] = _Stat()
            mine.merge(stat)

    def row(self, tier: int) -> Row:
        values = {COVERED_SECONDS: self.covered}
        metrics, lasting = self.metrics, tier >= TIERS[-1]
        for name, stat in self.stats.items():
            kept = metrics[name]
            for field, value in kept.lasting if lasting else kept.all:
                values[field] = value(stat)
        return Row(values, self.texts)


class _Bucket:
    """A window that is being filled."""

    __slots__ = ("end", "first", "last", "start", "subjects", "tier")

    def __init__(self, tier: int, start: int) -> None:
        self.tier = tier
        self.start = start
        self.end = start + tier
        self.first = math.inf
        self.last = -math.inf
        self.subjects: dict[Key, _Subject] = {}

    def window(self, host: str) -> Window:
        # A bucket that sampling entered late or left early covers only its own part.
        start = self.start if self.first < self.start + 2 else math.floor(self.first)
        end = self.end if self.last > self.end - 2 else math.ceil(self.last)
        rows = {key: subject.row(self.tier) for key, subject in self.subjects.items()}
        return Window(host, self.tier, start, max(1, end - start), rows)


class Aggregator:
    """Turns the samples of one host, in order of time, into windows of each tier.

    Windows begin on multiples of their length, counted from `origin`. A window closes when a
    sample after its end arrives; `flush` closes all.
    """

    def __init__(
        self,
        host: str,
        signals: Signals,
        *,
        tiers: Sequence[int] = TIERS,
        origin: int = 0,
        families: Sequence[Family] = FAMILIES,
    ) -> None:
        self._host = host
        self._marker = Marker(signals)
        self._tiers = tuple(sorted(tiers))
        self._origin = origin
        self._metrics = {f.measurement: {m.name: _Kept(m) for m in f.metrics} for f in families}
        self._open: dict[int, _Bucket] = {}
        self._seconds = 1.0

    def add(self, sample: Sample) -> list[Window]:
        """Takes a sample; returns the windows that it closed, the short tier first.

        The sample's rows are the aggregator's from then on: it adds marks to them, and looks at
        them again when their window closes.
        """
        closed = list(self._close(sample.time))
        if sample.seconds != self._seconds:
            self._settle()
            self._seconds = sample.seconds
        self._marker.mark(sample)
        add_composites(sample)
        base = self._tiers[0]
        bucket = self._open.get(base)
        if bucket is None:
            bucket = self._open[base] = _Bucket(base, self._bucket_start(sample.time, base))
        bucket.first = min(bucket.first, sample.time)
        bucket.last = max(bucket.last, sample.time + sample.seconds)
        for key, values in sample.rows.items():
            subject = bucket.subjects.get(key)
            if subject is None:
                subject = bucket.subjects[key] = _Subject(self._metrics[key[0]])
            subject.add(values, sample.seconds)
        for key, texts in sample.texts.items():
            subject = bucket.subjects.get(key)
            if subject is None:
                subject = bucket.subjects[key] = _Subject(self._metrics[key[0]])
            subject.texts.update(texts)
        return closed

    def flush(self) -> list[Window]:
        """Closes what is open, whole or not."""
        return list(self._close(math.inf))

    def _bucket_start(self, time: float, tier: int) -> int:
        return math.floor((time - self._origin) / tier) * tier + self._origin

    def _settle(self) -> None:
        bucket = self._open.get(self._tiers[0])
        if bucket is not None:
            for subject in bucket.subjects.values():
                subject.settle(self._seconds)

    def _close(self, now: float) -> Iterator[Window]:
        base = self._tiers[0]
        bucket = self._open.get(base)
        # Out of the bucket on either side: a clock that was set back closes it too.
        if bucket is not None and not bucket.start <= now < bucket.end:
            self._settle()
            del self._open[base]
            yield bucket.window(self._host)
            for tier in self._tiers[1:]:
                yield from self._pass_on(bucket, tier)
        for tier in self._tiers[1:]:
            longer = self._open.get(tier)
            if longer is not None and not longer.start <= now < longer.end:
                del self._open[tier]
                yield longer.window(self._host)

    def _pass_on(self, bucket: _Bucket, tier: int) -> Iterator[Window]:
        start = self._bucket_start(bucket.start, tier)
        longer = self._open.get(tier)
        if longer is not None and longer.start != start:
            del self._open[tier]
            yield longer.window(self._host)
            longer = None
        if longer is None:
            longer = self._open[tier] = _Bucket(tier, start)
        longer.first = min(longer.first, bucket.first)
        longer.last = max(longer.last, bucket.last)
        for key, subject in bucket.subjects.items():
            mine = longer.subjects.get(key)
            if mine is None:
                mine = longer.subjects[key] = _Subject(subject.metrics)
            mine.merge(subject)
