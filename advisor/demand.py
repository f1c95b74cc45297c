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
    al., vLLM: https://arxiv.org/abs/2309.06180). llama.cpp tells its weights and its longest
    sequence, of which as many are taken as ran at once at most; Ollama what its models take with a
    cache of the context that they were given, which is an upper bound. PyTorch's caching allocator
    never gives back, so its peak is one too. What an engine reserved says nothing.
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
    engines = _engines(observations, gpus, segments)
    taken = _most(engines, "models_bytes")
    if taken is not None:
        return JobDemand(
            gpus=gpus,
            phase=job.phase,
            model=job.model,
            weights_bytes=None,
            peak_kv_bytes=None,
            vram_bytes=taken,
            upper_bound=True,
            source="what the engine says that its models take",
            confidence=0.7,
        )
    weights, doubt = _most(engines, "weights_bytes"), None
    own = weights is not None
    if weights is None:
        weights, doubt = _weights(job)
    peak = _peak_kv_bytes(engines, job)
    known = weights is not None and peak is not None
    told = (
        "weights as the engine tells them + peak use of the KV cache"
        if own
        else "weights of the catalogue + peak use of the KV cache"
    )
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
        source=told if known else "unknown",
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


_Engines = list[tuple[Frame, list[int]]]
"""Frames of engines, each with the windows that belong to a job."""


def _engines(
    observations: Observations, gpus: Sequence[str], segments: Sequence[Segment]
) -> _Engines:
    """What the engines on these GPUs told, during the segments."""
    found: _Engines = []
    for frame in observations.frames.get("engine", ()):
        mine = [
            i
            for i, (start, texts) in enumerate(zip(frame.start, frame.texts, strict=False))
            if not set(texts.get("gpu_uuids", "").replace(",", " ").split()).isdisjoint(gpus)
            and any(s.start <= start < s.end for s in segments)
        ]
        if mine:
            found.append((frame, mine))
    return found


def _most(engines: _Engines, name: str) -> float | None:
    """The largest value of a column."""
    return max(
        (
            value
            for frame, windows in engines
            if (column := frame.columns.get(name)) is not None
            for i in windows
            if (value := column[i]) is not None
        ),
        default=None,
    )


def _peak_kv_bytes(engines: _Engines, job: Segment) -> float | None:
    """The most that the engines' caches held."""
    peak: float | None = None
    for frame, windows in engines:
        usage = frame.columns.get("kv_cache_usage_ratio_max")
        means = frame.columns.get("kv_cache_usage_ratio")
        pool, tokens = (frame.columns.get(f"kv_cache_{unit}") for unit in ("bytes", "tokens"))
        if (pool is None and tokens is None) or (usage is None and means is None):
            continue
        for i in windows:
            share = usage[i] if usage is not None else None
            if share is None and means is not None:
                share = means[i]
            size = pool[i] if pool is not None else None
            if size is None and tokens is not None and (held := tokens[i]) is not None:
                each = _token_bytes(frame.texts[i].get("model") or job.model)
                size = None if each is None else held * each
            if share is not None and size is not None:
                peak = max(peak or 0.0, share * size)
    return _longest_bytes(engines, job) if peak is None else peak


def _longest_bytes(engines: _Engines, job: Segment) -> float | None:
    """As many sequences of the longest that was seen as ran at once at most: never too little."""
    longest = _most(engines, "longest_sequence_tokens")
    named = (frame.texts[i].get("model") for frame, windows in engines for i in windows)
    each = _token_bytes(next((name for name in named if name), None) or job.model)
    if longest is None or each is None:
        return None
    running = _most(engines, "requests_running_max") or _most(engines, "requests_running")
    return max(1.0, running or 0.0) * longest * each


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
