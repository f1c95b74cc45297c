"""The phases of GPU work, and segments of time in one phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any


class Phase(StrEnum):
    """What a GPU is used for. The broader ones are the honest answer where no more is known."""

    TRAINING = "training"
    FULL_FINETUNING = "full_finetuning"
    LORA_FINETUNING = "lora_finetuning"
    QLORA_FINETUNING = "qlora_finetuning"
    FINETUNING = "finetuning"
    TRAINING_OR_FINETUNING = "training_or_finetuning"
    LLM_INFERENCE = "llm_inference"
    LIGHT_INFERENCE = "light_inference"
    INFERENCE = "inference"
    IDLE = "idle"
    UNKNOWN = "unknown"


FINETUNING_PHASES = frozenset(
    {
        Phase.FULL_FINETUNING,
        Phase.LORA_FINETUNING,
        Phase.QLORA_FINETUNING,
        Phase.FINETUNING,
    }
)
TRAINING_PHASES = FINETUNING_PHASES | {Phase.TRAINING, Phase.TRAINING_OR_FINETUNING}
SERVING_PHASES = frozenset({Phase.LLM_INFERENCE, Phase.LIGHT_INFERENCE, Phase.INFERENCE})
WITHIN: Mapping[Phase, frozenset[Phase]] = {
    Phase.TRAINING_OR_FINETUNING: TRAINING_PHASES,
    Phase.FINETUNING: FINETUNING_PHASES,
    Phase.INFERENCE: SERVING_PHASES,
}
"""The narrower phases that a broad one may turn out to be, itself included."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One GPU in one phase over [start, end) (Unix seconds).

    `parameters` is the model's parameter count where known; `precision` that of its weights.
    `group` numbers the GPUs that one job uses together.
    """

    host: str
    gpu_uuid: str
    start: int
    end: int
    phase: Phase
    confidence: float
    evidence: tuple[str, ...] = ()
    model: str | None = None
    model_source: str | None = None
    parameters: float | None = None
    precision: str | None = None
    owner: str | None = None
    owner_kind: str | None = None
    gpus: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The JSON object of `talla-advisor phases`; what is not known is not in it."""
        document: dict[str, Any] = {}
        for name in (f.name for f in fields(self)):
            value = getattr(self, name)
            if value is not None and (value != () or name == "evidence"):
                document[name] = list(value) if isinstance(value, tuple) else value
        return document
