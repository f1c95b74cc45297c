"""The broad phase that telemetry alone tells, where it is clear."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any

from advisor.features import Features
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


def tell(features: Features, t: PhaseThresholds) -> Told | None:
    """`training_or_finetuning`, `inference`, or None where telemetry does not tell clearly."""
    if features.seconds < t.least_seconds:
        return None
    return _decode(features, t) or _training(features, t) or _requests(features, t)


def _decode(f: Features, t: PhaseThresholds) -> Told | None:
    """Bound by memory bandwidth with idle tensor cores: tokens are being generated."""
    dram, sm, tensor = f.dram_active_ratio, f.sm_active_ratio, f.tensor_active_ratio
    if dram is None or sm is None or tensor is None:
        return None
    if (
        dram < t.memory_bound_dram_ratio
        or sm >= t.memory_bound_sm_ratio
        or tensor >= t.decode_tensor_ratio
    ):
        return None
    line = (
        f"dram_active_ratio {dram:.2f} >= {t.memory_bound_dram_ratio} while sm_active_ratio"
        f" {sm:.2f} < {t.memory_bound_sm_ratio} and tensor_active_ratio {tensor:.2f} <"
        f" {t.decode_tensor_ratio}: bound by memory, as token generation is"
    )
    return Told(Phase.INFERENCE, 0.55, (line,))


def _training(f: Features, t: PhaseThresholds) -> Told | None:
    """A step loop: near the power limit and without pauses, on cards that do the same."""
    power, utilization = f.power_ratio, f.utilization_ratio
    if power is None or utilization is None:
        return None
    if power < t.training_power_ratio or utilization < t.training_utilization_ratio:
        return None
    if f.duty_ratio is not None and f.duty_ratio < t.training_duty_ratio:
        return None
    if f.dram_active_ratio is not None and f.dram_active_ratio >= t.memory_bound_dram_ratio:
        return None
    clear = power >= t.clear_power_ratio
    alike = f.alike_gpus >= t.alike_gpus
    if not clear:
        reserved = f.memory_ratio is not None and f.memory_ratio >= t.reserved_memory_ratio
        if not alike or reserved:
            return None  # a saturated server looks like this too
    confidence = 0.5 + 0.05 * clear + 0.05 * alike + 0.05 * (f.tensor_active_ratio is not None)
    lines = [
        f"power {power:.2f} of the limit >= {t.training_power_ratio}",
        f"utilization_ratio median {utilization:.2f} >= {t.training_utilization_ratio}",
    ]
    if alike:
        lines.append(f"{f.alike_gpus} GPUs do the same at the same time")
    return Told(Phase.TRAINING_OR_FINETUNING, confidence, tuple(lines))


def _requests(f: Features, t: PhaseThresholds) -> Told | None:
    """Work that comes and goes for hours while the memory stays reserved to the byte."""
    if f.seconds < t.requests_seconds or f.alternations < t.requests_alternations:
        return None
    if not t.requests_quiet_share_min <= f.quiet_share <= t.requests_quiet_share_max:
        return None
    if f.memory_ratio is None or f.memory_spread_ratio is None or f.power_ratio is None:
        return None
    if (
        f.memory_ratio < t.reserved_memory_ratio
        or f.memory_spread_ratio > t.flat_memory_ratio
        or f.power_ratio > t.serving_power_ratio
    ):
        return None
    return Told(
        Phase.INFERENCE,
        0.6,
        (
            f"work comes and goes ({f.alternations} times, waiting {f.quiet_share:.0%})",
            f"{f.memory_ratio:.0%} of the memory stays reserved, to {f.memory_spread_ratio:.1%}",
            f"power {f.power_ratio:.2f} of the limit <= {t.serving_power_ratio}",
        ),
        waits_too=True,
    )
