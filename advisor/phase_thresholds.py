"""The thresholds of `phases.toml`, and the shape of what telemetry tells."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any

from advisor.phase import Phase


@dataclass(frozen=True, slots=True)
class PhaseThresholds:
    """The thresholds of `phases.toml`."""

    bridge_seconds: float
    least_seconds: float
    training_power_ratio: float
    clear_power_ratio: float
    training_utilization_ratio: float
    training_duty_ratio: float
    alike_gpus: float
    alike_difference: float
    alike_overlap: float
    reserved_memory_ratio: float
    memory_bound_dram_ratio: float
    memory_bound_sm_ratio: float
    decode_tensor_ratio: float
    requests_seconds: float
    requests_quiet_share_min: float
    requests_quiet_share_max: float
    requests_alternations: float
    flat_memory_ratio: float
    serving_power_ratio: float
    video_engine_ratio: float
    answer_probability: float
    confidence: float

    @classmethod
    def load(cls) -> PhaseThresholds:
        """The thresholds that Talla ships."""
        text = resources.files("advisor").joinpath("phases.toml").read_text("utf-8")
        return cls.parse(tomllib.loads(text))

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> PhaseThresholds:
        """Thresholds from their TOML table. Raises ValueError for a wrong set of names."""
        values = {entry["name"]: float(entry["value"]) for entry in data["threshold"]}
        wanted = {field.name for field in fields(cls)}
        if wanted != set(values):
            raise ValueError(f"phases.toml: {sorted(wanted ^ set(values))}")
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Told:
    """A phase with what it rests on. `waits_too`: the quiet windows in between belong to it."""

    phase: Phase
    confidence: float
    evidence: tuple[str, ...]
    waits_too: bool = False
