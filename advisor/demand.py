"""What the work needed, apart from what its allocator took: reserved is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.assessment import Observations
from advisor.catalogue import find_model
from advisor.message import Message, say
from advisor.phase import Phase, Segment
from telemetry.window import Frame

_NO_WORK = frozenset({Phase.IDLE, Phase.UNKNOWN})


@dataclass(frozen=True, slots=True)
class JobDemand:
    """Device memory that one job needed at its peak, over all of its GPUs together.

    A job is what shares one model: an inference engine with its tensor-parallel ranks, or the
    ranks of one training run. `weights_bytes` and `peak_kv_bytes` are known only for inference
    whose model and engine tell; `vram_bytes` is their sum. Where `upper_bound` is true,
    `vram_bytes` is what the allocator held (the need is at most that).
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
    reason: Message | None = None


def job_demands(observations: Observations) -> list[JobDemand]:
    """The demand of each job that was seen, one entry for each set of GPUs and model.

    An engine that tells the use of its cache needed its weights and the peak of that use (Kwon et
    al., vLLM: https://arxiv.org/abs/2309.06180). PyTorch's caching allocator never gives back, so
    its peak is an upper bound. What an engine reserved says nothing.
    """
    jobs: dict[tuple[object, ...], list[Segment]] = {}
    for timeline in observations.gpus.values():
        for segment in timeline.segments:
            if segment.phase not in _NO_WORK:
                gpus = segment.gpus or (segment.gpu_uuid,)
                jobs.setdefault((segment.phase, segment.model, gpus), []).append(segment)
    return [
        _inference(observations, segments)
        if segments[0].phase in {Phase.LLM_INFERENCE, Phase.INFERENCE}
        else _bounded(observations, segments)
        for segments in jobs.values()
    ]


def _inference(observations: Observations, segments: Sequence[Segment]) -> JobDemand:
    job = segments[0]
    gpus = job.gpus or (job.gpu_uuid,)
    weights, doubt = _weights(job)
    peak = _peak_kv_bytes(observations.frames.get("engine", ()), gpus, segments)
    known = weights is not None and peak is not None
    reason: Message | None
    if peak is None:
        reason = say(
            "an engine reserves memory whatever it needs; its metrics, which tell the use of the"
            " KV cache, were not seen (let the agent read the engine's endpoint)"
        )
    else:
        reason = doubt if weights is None else None
    return JobDemand(
        gpus=gpus,
        phase=job.phase,
        model=job.model,
        weights_bytes=weights,
        peak_kv_bytes=peak,
        vram_bytes=weights + peak if weights is not None and peak is not None else None,
        upper_bound=False,
        source="weights of the catalogue + peak use of the KV cache" if known else "unknown",
        confidence=(0.8 if not doubt else 0.65) if known else 0.0,
        reason=reason,
    )


def _weights(job: Segment) -> tuple[float | None, Message | None]:
    """Bytes of the weights, and what is doubtful about them."""
    from advisor.planner import PlanError, weights_bytes

    model = None if job.model is None else find_model(job.model)
    if model is None:
        return None, say(
            "{model} is not in the catalogue; declare it in [server] with its parameters",
            model=job.model or say("the model"),
        )
    stored = job.precision or model.quant
    try:
        size = float(weights_bytes(model, stored or "bf16"))
    except PlanError as error:
        return None, say("{problem}", problem=str(error))
    return size, None if stored else say("the weights are taken to be kept in 16 bits")


def _peak_kv_bytes(
    engines: Sequence[Frame], gpus: Sequence[str], segments: Sequence[Segment]
) -> float | None:
    """The most that the caches of the engines on these GPUs held, during the segments."""
    peak: float | None = None
    for frame in engines:
        usage = frame.columns.get("kv_cache_usage_ratio_max")
        means = frame.columns.get("kv_cache_usage_ratio")
        pool, tokens = (frame.columns.get(f"kv_cache_{unit}") for unit in ("bytes", "tokens"))
        if (pool is None and tokens is None) or (usage is None and means is None):
            continue
        for i, start in enumerate(frame.start):
            texts = frame.texts[i] if i < len(frame.texts) else {}
            if set(texts.get("gpu_uuids", "").replace(",", " ").split()).isdisjoint(gpus):
                continue
            if not any(s.start <= start < s.end for s in segments):
                continue
            share = usage[i] if usage is not None else None
            if share is None and means is not None:
                share = means[i]
            size = pool[i] if pool is not None else None
            if size is None and tokens is not None and (held := tokens[i]) is not None:
                each = _token_bytes(texts.get("model") or segments[0].model)
                size = None if each is None else held * each
            if share is not None and size is not None:
                peak = max(peak or 0.0, share * size)
    return peak


def _token_bytes(name: str | None) -> float | None:
    """What a token of the cache takes, in 16 bits: engines tell tokens, not bytes.

    A cache of 8 bits needs half of that, so that the demand is rather too high than too low.
    """
    from advisor.planner import kv_bytes_per_token

    model = None if name is None else find_model(name)
    return None if model is None else kv_bytes_per_token(model)


def _bounded(observations: Observations, segments: Sequence[Segment]) -> JobDemand:
    """What the allocator held at most, all GPUs together at the same time."""
    job = segments[0]
    gpus = job.gpus or (job.gpu_uuid,)
    spans = {(s.start, s.end) for s in segments}
    held: dict[int, float] = {}
    seen: dict[int, int] = {}
    for uuid in gpus:
        timeline = observations.gpus.get(uuid)
        if timeline is None:
            continue
        frame = timeline.frame
        tops = frame.columns.get("memory_used_bytes_max") or frame.columns.get("memory_used_bytes")
        if tops is None:
            continue
        for start, top in zip(frame.start, tops, strict=True):
            if top is not None and any(a <= start < b for a, b in spans):
                held[start] = held.get(start, 0.0) + top
                seen[start] = seen.get(start, 0) + 1
    whole = [held[start] for start, count in seen.items() if count == len(gpus)]
    if not whole:
        return JobDemand(
            gpus,
            job.phase,
            job.model,
            None,
            None,
            None,
            False,
            "unknown",
            0.0,
            say("how much memory was held is unknown"),
        )
    return JobDemand(
        gpus=gpus,
        phase=job.phase,
        model=job.model,
        weights_bytes=None,
        peak_kv_bytes=None,
        vram_bytes=max(whole),
        upper_bound=True,
        source="peak of the memory that the framework held",
        confidence=0.6,
    )
