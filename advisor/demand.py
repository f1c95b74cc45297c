"""What the work needed, apart from what its allocator took: reserved is not needed."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.phase import Phase


@dataclass(frozen=True, slots=True)
class JobDemand:
    """Device memory that one job needed at its peak, over all of its GPUs together.

    A job is what shares one model: an inference engine with its tensor-parallel ranks, or the
    ranks of one training run. `weights_bytes` and `peak_kv_bytes` are known only for inference
    whose model and engine tell; `vram_bytes` is their sum plus what the engine adds. Where
    `upper_bound` is true, `vram_bytes` is what the allocator held (the need is at most that).
    `vram_bytes` is None where nothing can be said; `reason` says why, and how to tell it.
    """

    gpus: tuple[str, ...]
    phase: Phase
    model: str | None
    weights_bytes: float | None
    peak_kv_bytes: float | None
    vram_bytes: float | None
    upper_bound: bool
    source: str
    confidence: float
    reason: str = ""


# def job_demands(observations: Observations) -> list[JobDemand]: sizing calls this; the states
# and phases part writes it.
