"""Findings: what the advisor says of one dimension of one server."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any

from advisor.message import Message


class Dimension(StrEnum):
    """What a finding is about."""

    OVERALL = "overall"
    GPU_COUNT = "gpu_count"
    GPU_CLASS = "gpu_class"
    VRAM = "vram"
    INTERCONNECT = "interconnect"
    PCIE = "pcie"
    CPU = "cpu"
    RAM = "ram"
    STORAGE = "storage"
    NETWORK = "network"
    POWER = "power"
    USAGE = "usage"


class Verdict(StrEnum):
    """Whether the hardware fits."""

    OVER = "over"
    UNDER = "under"
    RIGHT = "right"
    IDLE = "idle"
    ABSTAIN = "abstain"
    ADVICE = "advice"


class Basis(StrEnum):
    """What a finding rests on: it cannot fit, a symptom was seen, or the guide says otherwise."""

    PHYSICAL = "physical"
    MEASURED = "measured"
    DOCUMENTED = "documented"


class Step(StrEnum):
    """The order in which advice is worth following: what costs nothing first, buying last.

    `FEWER_GPUS` stands for less of other hardware too.
    """

    REPAIR = "repair"
    ENGINE = "engine"
    QUANTISATION = "quantisation"
    CONSOLIDATION = "consolidation"
    SMALLER_CLASS = "smaller_class"
    FEWER_GPUS = "fewer_gpus"
    BUY = "buy"

    @property
    def rank(self) -> int:
        """From 0, the first to be taken."""
        return list(Step).index(self)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One figure: the metric, the statistic that it is, its value and what it was held against."""

    metric: str
    statistic: str
    value: float | str
    threshold: float | str | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """Peak device memory that the work needed on a GPU, without headroom."""

    vram_bytes: float
    source: str
    confidence: float


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The look-back replayed on smaller hardware: `count` of `gpu`.

    `rule` is the guide's sentence that names the option, None for fewer of the same card.
    `served_ratio` is the share of the windows whose memory and work it would have held;
    `peak_load_ratio` its load at the peak that is sized by, and at the worst of the conversion
    between two kinds of card; `queued_seconds` the longest that work would have waited;
    `frees` the GPUs that would be left over. It `fits` where all constraints hold with headroom;
    `obstacles` are those that fail besides memory and load.
    """

    gpu: str
    count: int
    served_ratio: float
    peak_load_ratio: float
    peak_load_ratio_at_worst: float
    memory_headroom_ratio: float
    queued_seconds: float
    frees: int
    fits: bool
    rule: str | None = None
    obstacles: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict. `rule` decided it; `rules` are all that spoke.

    `gpu_hours_per_week` are those that following the recommendation would set free.
    """

    host: str
    scope: str
    dimension: Dimension
    verdict: Verdict
    reason: Message
    confidence: float
    coverage_ratio: float
    basis: Basis | None = None
    phase: str | None = None
    rule: str | None = None
    rules: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    recommendation: Message | None = None
    saving: Message | None = None
    gpu_hours_per_week: float | None = None
    cause: str | None = None
    lost_ratio: float | None = None
    demand: Demand | None = None
    step: Step | None = None
    what_if: tuple[WhatIf, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The JSON object of the design; what is not known is not in it."""
        document: dict[str, Any] = _plain(self)
        return document


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return str(value)
    if is_dataclass(value):
        pairs = ((f.name, getattr(value, f.name)) for f in fields(value))
        return {n: _plain(v) for n, v in pairs if v is not None and v != ()}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value
