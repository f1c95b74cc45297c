"""What an inference engine says of itself, from its metrics page (names in `engines.toml`)."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, NamedTuple

_LINE = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})?\s+([-+.0-9A-Za-z]+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_NAME = re.compile(r"([^{]+)(?:\{(\w+)=([\w.]+)\})?")
_MOST_LINES = 20_000
_MODEL_LABELS = ("model_name", "model_id")
_TOP = 1.001
"""A ratio above 1 by less is rounding; anything more is another unit, and is not believed."""

GAUGES = (
    "kv_cache_tokens",
    "longest_sequence_tokens",
    "requests_running",
    "requests_waiting",
    "preemptions_total",
)
COUNTERS = {
    "prompt_tokens_total": "prompt_tokens_per_second",
    "generation_tokens_total": "generation_tokens_per_second",
}


class Point(NamedTuple):
    """One sample of the Prometheus text format."""

    name: str
    labels: Mapping[str, str]
    value: float


def points(page: str) -> Iterator[Point]:
    """The samples of a page, less the lines that do not fit the form."""
    for line in page.splitlines()[:_MOST_LINES]:
        if line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        try:
            value = float(found[3])
        except ValueError:
            continue
        yield Point(found[1], dict(_LABEL.findall(found[2] or "")), value)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one page tells: levels by our metric, counters, what is odd, and the model's name."""

    engine: str
    levels: Mapping[str, float]
    counters: Mapping[str, float]
    model: str | None = None
    unavailable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine's entry of `engines.toml`."""

    name: str
    prefix: tuple[str, ...]
    paths: tuple[str, ...]
    ranks: tuple[str, ...]
    names: Mapping[str, tuple[str, ...]]
    cache_blocks: Mapping[str, str] | None = None
    version_path: str | None = None

    def read(self, page: Iterable[Point]) -> Reading:
        """The reading of a page that is this engine's."""
        series: dict[str, list[Point]] = {}
        for point in page:
            if all(point.labels.get(rank, "0") in ("", "0") for rank in self.ranks):
                series.setdefault(point.name, []).append(point)
        levels: dict[str, float] = {}
        odd: dict[str, str] = {}
        for metric in GAUGES:
            values = self._values(series, metric)
            if values:
                levels[metric] = sum(values)
        # Data-parallel engines have a cache each: of equal size, so their mean is the whole's use.
        usage = self._values(series, "kv_cache_usage_ratio") or self._blocks_used(series)
        if usage and all(0 <= value <= _TOP for value in usage):
            levels["kv_cache_usage_ratio"] = min(1.0, sum(usage) / len(usage))
        elif usage:
            odd["kv_cache_usage_ratio"] = f"{max(usage):g} is no ratio of 0 to 1"
        else:
            odd["kv_cache_usage_ratio"] = f"{self.name} does not tell it on this page"
        tokens = self._cache_tokens(series)
        if tokens:
            levels["kv_cache_tokens"] = tokens
        counters = {m: sum(v) for m in COUNTERS if (v := self._values(series, m))}
        return Reading(self.name, levels, counters, _model(series), odd)

    def _values(self, series: Mapping[str, list[Point]], metric: str) -> list[float]:
        """The values under the first of the metric's names that the page has."""
        for written in self.names.get(metric, ()):
            name, label, wanted = _NAME.fullmatch(written).groups()  # type: ignore[union-attr]
            values = [
                point.value
                for point in series.get(name, ())
                if label is None or point.labels.get(label) == wanted
            ]
            if values and all(math.isfinite(v) and v >= 0 for v in values):
                return values
        return []

    def _blocks_used(self, series: Mapping[str, list[Point]]) -> list[float]:
        """The use of caches whose page has their blocks and no ratio."""
        used = self._values(series, "kv_cache_used_blocks")
        most = self._values(series, "kv_cache_blocks")
        return [sum(used) / sum(most)] if used and sum(most) > 0 else []

    def _cache_tokens(self, series: Mapping[str, list[Point]]) -> float | None:
        if self.cache_blocks is not None:
            total = 0
            for point in series.get(self.cache_blocks["series"], ()):
                blocks = point.labels.get(self.cache_blocks["blocks"], "")
                size = point.labels.get(self.cache_blocks["size"], "")
                if blocks.isdigit() and size.isdigit():
                    total += int(blocks) * int(size)
            return float(total) or None
        most = self._values(series, "kv_cache_blocks")
        each = self._values(series, "kv_cache_block_tokens")
        return sum(most) * each[0] if most and each else None


def _model(series: Mapping[str, list[Point]]) -> str | None:
    """The one model that the page's labels name; None where they name none or several."""
    named = {
        point.labels[label]
        for some in series.values()
        for point in some
        for label in _MODEL_LABELS
        if point.labels.get(label)
    }
    return named.pop() if len(named) == 1 else None


class Engines:
    """All engines that are known."""

    def __init__(self, engines: tuple[Engine, ...]) -> None:
        self._engines = engines

    @classmethod
    def load(cls) -> Engines:
        """The engines that Talla ships."""
        text = resources.files("agent.engines").joinpath("engines.toml").read_text("utf-8")
        return cls(tuple(_engine(entry) for entry in tomllib.loads(text)["engine"]))

    @property
    def paths(self) -> tuple[str, ...]:
        """Where metrics pages are looked for, in order."""
        return tuple(dict.fromkeys(path for engine in self._engines for path in engine.paths))

    def named(self, name: str) -> Engine:
        """Raises StopIteration where there is none."""
        return next(engine for engine in self._engines if engine.name == name)

    def read(self, page: str) -> Reading | None:
        """What a page tells, None where it is no engine's."""
        found = list(points(page))
        for engine in self._engines:
            if any(point.name.startswith(engine.prefix) for point in found):
                return engine.read(found)
        return None


def _engine(entry: Mapping[str, Any]) -> Engine:
    names = {
        key: tuple(value)
        for key, value in entry.items()
        if isinstance(value, list) and key not in ("prefix", "paths", "ranks")
    }
    return Engine(
        name=entry["name"],
        prefix=tuple(entry["prefix"]),
        paths=tuple(entry["paths"]),
        ranks=tuple(entry["ranks"]),
        names=names,
        cache_blocks=entry.get("cache_blocks"),
        version_path=entry.get("version_path"),
    )


__all__ = ["COUNTERS", "Engine", "Engines", "Point", "Reading", "points"]
