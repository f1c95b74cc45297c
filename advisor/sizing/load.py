"""What the work of a server took, window by window: time, memory traffic, arithmetic, memory.

A window in which a GPU was not seen is not complete: it can raise a peak, and is never a zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from advisor.demand import JobDemand
from advisor.phase import Phase
from advisor.sizing import series
from advisor.sizing.case import SERVING, Case
from telemetry.window import Frame

STEP = 300
"""Seconds of a bin: windows of several GPUs are laid on one grid of time."""


@dataclass(frozen=True, slots=True)
class Level:
    """What one GPU gave on average over a stretch of time.

    `busy` is the share of time with a kernel; traffic in bytes and arithmetic in operations per
    second are None where neither the card nor the catalogue tells.
    """

    busy: float
    traffic: float | None
    arithmetic: float | None


@dataclass(frozen=True, slots=True)
class Moment:
    """All GPUs together in one bin of time.

    `busy` adds up shares of time, so that 2.0 is two cards' work. `memory` has bytes for each job
    of `LookBack.jobs`; a job that was not there needs none. `complete`: every GPU was seen.
    """

    start: int
    busy: float
    traffic: float | None
    arithmetic: float | None
    memory: tuple[float, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class LookBack:
    """The moments in order of time. `counted` is true where the cards tell their own activity

    (multiprocessors, tensor cores, memory), so that utilisation need not stand in for it.
    `tokens_per_second` is what a running request was given (see `_tokens_per_second`).
    """

    jobs: tuple[JobDemand, ...]
    moments: tuple[Moment, ...]
    counted: bool
    tokens_per_second: float | None

    @property
    def serves(self) -> bool:
        """Whether all jobs are engines whose need is known, so that cards can be told apart."""
        return all(job.phase in SERVING and not job.upper_bound for job in self.jobs)


def look_back(case: Case) -> LookBack | None:
    """None where a GPU's activity is unknown throughout, or a job's memory is."""
    if case.observations is None or not case.demands:
        return None
    jobs = case.demands
    if any(job.vram_bytes is None for job in jobs):
        return None
    speed = _tokens_per_second(case)
    told = speed is not None and _told_by_engine(jobs)
    per_gpu = [levels(case, uuid, told) for uuid in case.observations.gpus]
    if any(not found for found in per_gpu):
        return None
    memory = [_memory(case, job) for job in jobs]
    starts = sorted({start for found in per_gpu for start in found})
    moments = tuple(
        _moment(start, [found.get(start) for found in per_gpu], memory) for start in starts
    )
    counted = all(
        series.known(t.frame, "dram_active_ratio") and series.known(t.frame, "sm_active_ratio")
        for t in case.observations.gpus.values()
    )
    return LookBack(tuple(jobs), moments, counted, speed)


def busy_sums(case: Case) -> list[float]:
    """For each bin of time the shares of time with a kernel, added up over the GPUs seen in it.

    Empty where a GPU's utilisation is unknown throughout.
    """
    if case.observations is None:
        return []
    if case.past is not None:
        return [moment.busy for moment in case.past.moments]
    sums: dict[int, float] = defaultdict(float)
    for uuid in case.observations.gpus:
        found = levels(case, uuid, means=True)
        if not found:
            return []
        for start, level in found.items():
            sums[start] += level.busy
    return list(sums.values())


def levels(case: Case, uuid: str, means: bool) -> dict[int, Level]:
    """One GPU by bin of time.

    With `means` traffic and arithmetic are 5-minute means, else maxima of one second where they
    were kept: without an engine's word on its speed, bursts must fit. A card that does not tell
    its activity is taken to use all of itself while a kernel runs, which is too much.
    """
    assert case.observations is not None
    frame = case.observations.gpus[uuid].frame
    model = next((c.model for c in case.cards if c.info.uuid == uuid), None)
    utilization = frame.columns.get("utilization_ratio") or frame.columns.get("sm_active_ratio")
    if utilization is None:
        return {}
    dram = _column(frame, "dram_active_ratio", means)
    tensor = _column(frame, "tensor_active_ratio", means)
    bandwidth = model.bandwidth_bytes_per_second if model else None
    flops = model.dense_bf16_flops if model else None
    whole: dict[int, Level] = {}
    parts: dict[int, list[tuple[int, Level]]] = defaultdict(list)
    for i, busy in enumerate(utilization):
        if busy is None:
            continue
        moved, counted = dram[i] if dram else None, tensor[i] if tensor else None
        level = Level(
            busy,
            None if bandwidth is None else bandwidth * (busy if moved is None else moved),
            None if flops is None else flops * (busy if counted is None else counted),
        )
        at, length = frame.start[i], frame.seconds[i]
        if length == STEP and at % STEP == 0 and at not in parts:  # nearly all windows
            whole[at] = level
            continue
        for start, seconds in _bins(at, length):
            if start in whole:
                parts[start].append((STEP, whole.pop(start)))
            parts[start].append((seconds, level))
    return whole | {start: _mean(found) for start, found in parts.items()}


def _column(frame: Frame, name: str, means: bool) -> Sequence[float | None] | None:
    top = None if means else frame.columns.get(f"{name}_max")
    return top or frame.columns.get(name)


def _bins(start: int, seconds: int) -> Iterator[tuple[int, int]]:
    """The bins that a window lies in, with its seconds in each."""
    at, end = start, start + seconds
    while at < end:
        until = min(end, at - at % STEP + STEP)
        yield at - at % STEP, until - at
        at = until


def _mean(parts: Sequence[tuple[int, Level]]) -> Level:
    if len(parts) == 1:
        return parts[0][1]
    total = sum(seconds for seconds, _ in parts)

    def mean(values: Sequence[float | None]) -> float | None:
        known = [v for v in values if v is not None]
        if len(known) < len(values):
            return None
        return sum(v * s for v, (s, _) in zip(known, parts, strict=True)) / total

    busy = mean([level.busy for _, level in parts]) or 0.0
    return Level(busy, mean([p.traffic for _, p in parts]), mean([p.arithmetic for _, p in parts]))


def _moment(
    start: int, found: Sequence[Level | None], memory: Sequence[Mapping[int, float]]
) -> Moment:
    seen = [level for level in found if level is not None]
    traffic = [level.traffic for level in seen if level.traffic is not None]
    arithmetic = [level.arithmetic for level in seen if level.arithmetic is not None]
    return Moment(
        start,
        sum(level.busy for level in seen),
        sum(traffic) if len(traffic) == len(seen) else None,
        sum(arithmetic) if len(arithmetic) == len(seen) else None,
        tuple(job.get(start, 0.0) for job in memory),
        len(seen) == len(found),
    )


def _told_by_engine(jobs: Sequence[JobDemand]) -> bool:
    return all(job.phase is Phase.LLM_INFERENCE and not job.upper_bound for job in jobs)


def _memory(case: Case, job: JobDemand) -> dict[int, float]:
    """Bytes that a job needed in each bin in which one of its GPUs was seen at it.

    Weights with what the cache held then; where that was not seen, the job's peak.
    """
    assert case.observations is not None
    assert job.vram_bytes is not None
    found: dict[int, float] = {}
    for uuid in job.gpus:
        timeline = case.observations.gpus.get(uuid)
        if timeline is None:
            continue
        spans = [(s.start, s.end) for s in timeline.segments if s.phase is job.phase]
        for start in timeline.frame.start:
            if any(a <= start < b for a, b in spans):
                found[start - start % STEP] = job.vram_bytes
    if job.weights_bytes is None:
        return found
    told: dict[int, float] = {}
    for frame in case.frames("engine"):
        pool = frame.columns.get("kv_cache_bytes")
        usage = frame.columns.get("kv_cache_usage_ratio_max")
        usage = usage or frame.columns.get("kv_cache_usage_ratio")
        if pool is None or usage is None:
            continue
        for i, start in enumerate(frame.start):
            share, size = usage[i], pool[i]
            texts = frame.texts[i] if i < len(frame.texts) else {}
            mine = not set(texts.get("gpu_uuids", "").replace(",", " ").split()).isdisjoint(
                job.gpus
            )
            at = start - start % STEP
            if mine and share is not None and size is not None and at in found:
                told[at] = max(told.get(at, 0.0), job.weights_bytes + share * size)
    return found | told


def _tokens_per_second(case: Case) -> float | None:
    """Tokens made a second for each running request: the median of the windows with a request

    throughout. Where requests are too rare for that, all tokens over all the time that requests
    ran: a window's mean of both holds the quiet seconds too, and their ratio does not.
    """
    rates = []
    tokens = ran = 0.0
    for frame in case.frames("engine"):
        made = frame.columns.get("generation_tokens_per_second")
        running = frame.columns.get("requests_running")
        for rate, requests in zip(made or (), running or (), strict=False):
            if rate is None or requests is None:
                continue
            tokens, ran = tokens + rate, ran + requests
            if rate > 0.0 and requests >= 1.0:
                rates.append(rate / requests)
    if rates:
        return series.percentile(rates, 0.5)
    return tokens / ran if tokens > 0.0 and ran > 0.0 else None
