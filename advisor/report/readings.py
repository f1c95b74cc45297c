"""Readings of a GPU over the told period, from its 5-minute windows."""

from __future__ import annotations

from advisor.assessment import GpuTimeline, Period
from advisor.message import Amount
from advisor.report.report import Server


def column(timeline: GpuTimeline | None, told: Period, name: str) -> list[tuple[float, int]]:
    """Values with the seconds that each stands for, of the windows of the period."""
    if timeline is None or name not in timeline.frame.columns:
        return []
    frame = timeline.frame
    rows = zip(frame.start, frame.columns[name], frame.seconds, strict=True)
    return [(v, n) for start, v, n in rows if v is not None and told.since <= start < told.until]


def quantile(
    timeline: GpuTimeline | None, told: Period, name: str, share: float, unit: str
) -> Amount | None:
    """The value that `share` of the windows do not exceed; the maximum for 1."""
    values = sorted(v for v, _ in column(timeline, told, name))
    if not values:
        return None
    return Amount(values[min(len(values) - 1, int(share * len(values)))], unit)


def mean(timeline: GpuTimeline | None, told: Period, name: str, unit: str) -> Amount | None:
    """The mean over time."""
    found = _mean(column(timeline, told, name))
    return None if found is None else Amount(found, unit)


def mean_utilization(server: Server) -> float | None:
    """The mean of all GPUs over the time that was seen, 0..1; None where no card tells it."""
    seen = server.assessment.observations
    timelines = () if seen is None else seen.gpus.values()
    told = server.assessment.told
    return _mean([row for t in timelines for row in column(t, told, "utilization_ratio")])


def _mean(rows: list[tuple[float, int]]) -> float | None:
    seconds = sum(n for _, n in rows)
    return sum(v * n for v, n in rows) / seconds if seconds else None
