"""The broad phase that telemetry alone tells: by published signs, then by the classifier.

A sign decides by itself and shows its reason. The classifier is asked about what no sign tells,
must be sure, and may not contradict one.
"""

from __future__ import annotations

from collections.abc import Sequence

from advisor.classifier.answer import Answer, answers
from advisor.classifier.model import Models
from advisor.features import Features
from advisor.phase import Phase
from advisor.phase_thresholds import PhaseThresholds, Told


def tell(work: Sequence[Features], t: PhaseThresholds, models: Models) -> list[Told | None]:
    """For each stretch of work `training_or_finetuning`, `inference`, or None where telemetry
    does not tell clearly.
    """
    told = [_sign(features, t) for features in work]
    open_ = [
        i
        for i, features in enumerate(work)
        if told[i] is None and features.seconds >= t.least_seconds
    ]
    found = answers([work[i] for i in open_], t.answer_probability, models)
    for i, answer in zip(open_, found, strict=True):
        if answer is not None and not _contradicted(work[i], answer.phase, t):
            told[i] = _answered(work[i], answer, t)
    return told


def _sign(features: Features, t: PhaseThresholds) -> Told | None:
    if features.seconds < t.least_seconds:
        return None
    return (
        _video(features, t)
        or _decode(features, t)
        or _training(features, t)
        or _requests(features, t)
    )


def _answered(f: Features, answer: Answer, t: PhaseThresholds) -> Told:
    lines = [f"classifier: probability {answer.probability:.2f} >= {t.answer_probability}"]
    lines += answer.readings
    if f.alike_gpus > 1:
        lines.append(f"{f.alike_gpus} GPUs do the same at the same time")
    confidence = t.confidence * answer.probability
    return Told(answer.phase, confidence, tuple(lines), waits_too=answer.phase is Phase.INFERENCE)


def _contradicted(f: Features, phase: Phase, t: PhaseThresholds) -> bool:
    """Whether a published sign speaks against what the classifier says."""
    if phase is Phase.TRAINING_OR_FINETUNING:
        dram, sm = f.dram_active_ratio, f.sm_active_ratio
        return (
            dram is not None
            and dram >= t.memory_bound_dram_ratio
            and (sm is None or sm < t.memory_bound_sm_ratio)
        )
    if f.power_ratio is not None and f.power_ratio >= t.training_power_ratio:
        return True
    waits = f.quiet_share >= t.requests_quiet_share_min
    grows = f.memory_spread_ratio is not None and f.memory_spread_ratio > t.flat_memory_ratio
    return waits and grows  # a server that waits keeps what it holds


def _video(f: Features, t: PhaseThresholds) -> Told | None:
    """Video is decoded on one card beside kernels, and none is written: vision, not a training
    that reads video, which has its ranks and its power.
    """
    decoder, encoder, power = f.decoder_ratio, f.encoder_ratio, f.power_ratio
    if decoder is None or decoder < t.video_engine_ratio or power is None:
        return None
    if (encoder is not None and encoder >= t.video_engine_ratio) or f.alike_gpus >= t.alike_gpus:
        return None
    if power > t.serving_power_ratio:
        return None
    lines = (
        f"decoder_ratio {decoder:.2f} >= {t.video_engine_ratio}: video is decoded",
        f"power {power:.2f} of the limit <= {t.serving_power_ratio}",
    )
    return Told(Phase.LIGHT_INFERENCE, 0.5, lines)


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
    reserved = f.memory_ratio is not None and f.memory_ratio >= t.reserved_memory_ratio
    if f.alike_gpus < t.alike_gpus or (reserved and not clear):
        return None  # a saturated server looks like this too; on one small card up to its limit
    confidence = 0.55 + 0.05 * clear + 0.05 * (f.tensor_active_ratio is not None)
    lines = [
        f"power {power:.2f} of the limit >= {t.training_power_ratio}",
        f"utilization_ratio median {utilization:.2f} >= {t.training_utilization_ratio}",
        f"{f.alike_gpus} GPUs do the same at the same time",
    ]
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
