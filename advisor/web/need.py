"""How much of a GPU's memory an inference engine needs now, apart from what it reserved."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.catalogue import find_model
from advisor.planner import PlanError, weights_bytes
from advisor.processes import Process
from telemetry.window import Frame


def needed_bytes(
    engines: Sequence[Frame], uuid: str, processes: Sequence[Process], start: int
) -> float | None:
    """Weights and the used part of the KV cache in the window that begins at `start`, the share of
    one GPU of the engine's.

    None where no engine on the GPU tells its cache, or its model is not in the catalogue: what an
    engine reserved says nothing of what it needs.
    """
    for frame in engines:
        if not len(frame) or not frame.texts or frame.start[-1] != start:
            continue  # an engine that has ended needs nothing
        gpus = frame.texts[-1].get("gpu_uuids", "").replace(",", " ").split()
        row = frame.row(-1)
        usage, pool = row.get("kv_cache_usage_ratio"), row.get("kv_cache_bytes")
        if uuid not in gpus or usage is None or pool is None:
            continue
        name = frame.texts[-1].get("model")
        process = next((p for p in processes if p.model is not None), None)
        weights = _weights(
            name or (None if process is None else process.model),
            None if process is None else process.precision,
        )
        if weights is not None:
            return (weights + usage * pool) / len(gpus)
    return None


def _weights(name: str | None, precision: str | None) -> float | None:
    model = None if name is None else find_model(name)
    if model is None:
        return None
    try:
        return float(weights_bytes(model, precision or model.quant or "bf16"))
    except PlanError:
        return None
