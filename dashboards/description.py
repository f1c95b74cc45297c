"""What a dashboard is here: panels, each with the queries that it claims to show.

A query is described, not written: InfluxQL is made of it for Grafana, and the tests make the same
answer of the windows themselves and compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

WINDOW = "$window"
"""The tag `window` that a dashboard's variable chooses."""


class Per(StrEnum):
    """What a row of an answer stands for."""

    INTERVAL = "interval"
    """A stretch of time of the chart's resolution."""
    RANGE = "range"
    """The whole time shown."""
    POINT = "point"
    """One window or event."""


@dataclass(frozen=True, slots=True)
class Value:
    """One column: a field, what is made of it, and a divisor (3600 for hours)."""

    field: str
    aggregate: str = "mean"
    name: str = ""
    divisor: float = 1.0

    def influxql(self) -> str:
        """`percentile_95` is a percentile, `rate` a counter's, `raw` the field as it is."""
        if self.aggregate == "raw":
            text = f'"{self.field}"'
        elif self.aggregate.startswith("percentile_"):
            text = f'percentile("{self.field}", {self.aggregate.partition("_")[2]})'
        elif self.aggregate == "rate":
            text = f'non_negative_derivative(last("{self.field}"), 1s)'
        elif self.aggregate == "rise":
            text = f'non_negative_difference(last("{self.field}"))'
        else:
            text = f'{self.aggregate}("{self.field}")'
        if self.divisor != 1.0:
            text += f" / {self.divisor:g}"
        return f'{text} AS "{self.label}"'

    @property
    def label(self) -> str:
        return self.name or self.field


@dataclass(frozen=True, slots=True)
class Query:
    """One SELECT. `host` and `gpu` say that the dashboard's variables narrow it."""

    measurement: str
    values: tuple[Value, ...]
    by: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    per: Per = Per.INTERVAL
    window: str | None = WINDOW
    host: bool = True
    gpu: bool = False
    alias: str = ""
    limit: int = 0

    def influxql(self) -> str:
        """With Grafana's `$timeFilter`, `$__interval` and the dashboard's variables."""
        conditions = [f"\"{name}\" = '{value}'" for name, value in self.where]
        if self.window is not None:
            conditions.insert(0, f"\"window\" = '{self.window}'")
        if self.host:
            conditions.append('"host" =~ /^$host$/')
        if self.gpu:
            conditions.append('"gpu_uuid" =~ /^$gpu$/')
        groups = [f'"{name}"' for name in self.by]
        if self.per is Per.INTERVAL:
            groups.insert(0, "time($__interval)")
        return (
            f'SELECT {", ".join(v.influxql() for v in self.values)} FROM "{self.measurement}"'
            f" WHERE {' AND '.join([*conditions, '$timeFilter'])}"
            + (f" GROUP BY {', '.join(groups)}" if groups else "")
            + (" fill(none)" if self.per is Per.INTERVAL else "")
            + (f" ORDER BY time DESC LIMIT {self.limit}" if self.limit else "")
        )


class Kind(StrEnum):
    """How a panel draws."""

    LINES = "lines"
    BARS = "bars"
    STAT = "stat"
    TABLE = "table"
    TIMELINE = "timeline"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `marks` are thresholds from which it is coloured (value, colour); `reduce` is what
    a stat makes of its rows; `units` and `links` are of a table's columns."""

    title: str
    about: str
    kind: Kind
    queries: tuple[Query, ...] = ()
    unit: str = "none"
    marks: tuple[tuple[float, str], ...] = ()
    low: float | None = 0.0
    high: float | None = None
    reduce: str = "lastNotNull"
    units: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    width: int = 12
    height: int = 8
    text: str = ""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A page of panels. `windows` are the tiers that it offers, the first by default; none where
    its queries name theirs."""

    uid: str
    title: str
    about: str
    panels: tuple[tuple[str, tuple[Panel, ...]], ...]
    windows: tuple[str, ...] = ()
    gpu: bool = False
    since: str = "now-6h"
    refresh: str = "1m"
