"""The ranges of `generator.toml`: from what simulated stretches of work are drawn."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from advisor.phase import Phase


@dataclass(frozen=True, slots=True)
class Range:
    """Values between two ends, even or even by order of magnitude (`log`), with its sources."""

    low: float
    high: float
    log: bool
    sources: tuple[str, ...]


_NOTHING = Range(0.0, 0.0, False, ("own",))


@dataclass(frozen=True, slots=True)
class Common:
    """What is alike in all kinds of work.

    `saturated_reading_often` is how often utilisation reads 1 throughout, `flat_often` how often
    the memory held does not grow at all, `start_seen_often` how often a stretch begins with the
    memory being filled, over `start_seconds`. Levels drift by `drift_ratio` over `drift_seconds`,
    as sequences grow longer or a room warmer.
    """

    saturated_reading_often: float
    flat_often: float
    start_seen_often: float
    start_seconds: Range
    idle_power_ratio: Range
    utilization_noise: Range
    drift_ratio: Range
    drift_seconds: Range
    reading_noise: Range
    windows: Range
    occupied_power_tail: Range


@dataclass(frozen=True, slots=True)
class WorkKind:
    """One kind of work. `pattern` is how it is spread in time: steps, requests, loop or frames.

    Levels are those of seconds at work; power is a share of the limit. Of work that may stall
    `stalled_often` is how often it does, of work with a load `saturated_often` how often it is
    never without requests.
    """

    name: str
    phase: Phase
    pattern: str
    gpus: tuple[int, ...]
    power_ratio: Range
    utilization_ratio: Range
    sm_active_ratio: Range
    tensor_active_ratio: Range
    dram_active_ratio: Range
    swing_ratio: Range
    memory_ratio: Range
    memory_growth_ratio: Range
    pcie_bytes_per_second: Range
    link_bytes_per_second: Range
    stalled_share: Range = _NOTHING
    stalled_often: float = 0.0
    load: Range = _NOTHING
    saturated_often: float = 0.0


@dataclass(frozen=True, slots=True)
class Parameters:
    """All of `generator.toml`."""

    seed: int
    rows_a_kind: int
    sources: Mapping[str, str]
    common: Common
    kinds: tuple[WorkKind, ...]

    @classmethod
    def load(cls) -> Parameters:
        """The parameters that Talla ships."""
        text = resources.files("advisor.classifier").joinpath("generator.toml").read_text("utf-8")
        return cls.parse(tomllib.loads(text))

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Parameters:
        """Parameters from their TOML table. Raises ValueError for a source that is not there."""
        sources = data["source"]
        common = Common(**_values(data["common"], sources))
        kinds = tuple(_kind(entry, sources) for entry in data["kind"])
        return cls(data["seed"], data["rows_a_kind"], sources, common, kinds)


def _kind(entry: Mapping[str, Any], sources: Mapping[str, str]) -> WorkKind:
    values = _values(entry, sources)
    values["phase"] = Phase(values["phase"])
    values["gpus"] = tuple(values["gpus"])
    return WorkKind(**values)


def _values(entry: Mapping[str, Any], sources: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: _range(value, sources) if isinstance(value, dict) else value
        for name, value in entry.items()
    }


def _range(entry: Mapping[str, Any], sources: Mapping[str, str]) -> Range:
    named = tuple(entry["from"])
    unknown = [name for name in named if name not in sources]
    if unknown or not named or entry["low"] > entry["high"]:
        raise ValueError(f"generator.toml: {dict(entry)} names {unknown or 'no source'}")
    return Range(float(entry["low"]), float(entry["high"]), bool(entry.get("log")), named)
