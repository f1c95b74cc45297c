"""VRAM: what the work needed of the cards' memory, apart from what was reserved."""

from __future__ import annotations

from advisor.demand import JobDemand
from advisor.finding import Basis, Demand, Dimension, Evidence, Finding, Verdict
from advisor.message import Amount, Value, say
from advisor.sizing import documented
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion, settle
from telemetry.window import Frame

_DIMENSION = Dimension.VRAM


def judge(case: Case) -> Finding:
    """Under where the KV cache was full while requests waited; right where the need is known."""
    opinions = documented.opinions(case, _DIMENSION)
    if case.observations is not None and not case.too_short:
        opinions += _full(case)
        judged = [_job(case, demand) for demand in case.demands]
        if judged and all(o is not None for o in judged):
            opinions += [o for o in judged if o is not None]
        else:
            opinions = [o for o in opinions if o.verdict is not Verdict.RIGHT]
    why = next((d.reason for d in case.demands if d.vram_bytes is None and d.reason), None)
    return settle(
        case,
        _DIMENSION,
        opinions,
        otherwise=say("what the work needs is not known: {why}", why=why)
        if why
        else say("no work was seen whose need of memory could be judged"),
    )


def _capacity(case: Case, demand: JobDemand) -> float | None:
    by_uuid = {card.info.uuid: card.memory_bytes for card in case.cards}
    sizes = [by_uuid.get(uuid) for uuid in demand.gpus]
    known = [s for s in sizes if s is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def _job(case: Case, demand: JobDemand) -> Opinion | None:
    capacity = _capacity(case, demand)
    if demand.vram_bytes is None or capacity is None:
        return None
    limits = case.thresholds
    share = demand.vram_bytes / capacity
    evidence = (
        Evidence("demand.vram_bytes", "peak", demand.vram_bytes, capacity),
        Evidence("demand", "source", demand.source),
    )
    told = Demand(demand.vram_bytes / len(demand.gpus), demand.source, demand.confidence)
    values: dict[str, Value] = {
        "need": Amount(demand.vram_bytes, "bytes"),
        "capacity": Amount(capacity, "bytes"),
        "gpus": len(demand.gpus),
    }
    roomy = demand.upper_bound and share < limits.number("vram", "small_use")
    if roomy:
        verdict = Verdict.ADVICE
        reason = say("the work took at most {need} of the {capacity} on its {gpus} GPUs", **values)
    elif demand.upper_bound:
        verdict = Verdict.RIGHT
        reason = say(
            "the work fits: its allocator took {need} of the {capacity} on its {gpus} GPUs",
            **values,
        )
    else:
        verdict = Verdict.RIGHT
        reason = say("the work needs {need} of the {capacity} on its {gpus} GPUs", **values)
    return Opinion(
        verdict,
        Basis.MEASURED,
        reason,
        min(demand.confidence, limits.number("confidence", "right")),
        evidence=evidence,
        recommendation=say("A card with less memory would do for this work.") if roomy else None,
        demand=told,
    )


def _full(case: Case) -> list[Opinion]:
    limits = case.thresholds
    full = limits.number("vram", "kv_full")
    short = [(f, _full_windows(f, full)) for f in case.frames("engine")]
    worst = max((n for _, n in short), default=0)
    if worst < limits.number("vram", "waiting_windows"):
        return []
    return [
        Opinion(
            Verdict.UNDER,
            Basis.MEASURED,
            say(
                "the KV cache was full while requests waited, in {windows} windows of 5 minutes",
                windows=worst,
            ),
            limits.number("confidence", "measured"),
            rule="R19",
            evidence=(
                Evidence("engine.kv_cache_usage_ratio", "windows full while requests wait", worst),
            ),
            recommendation=say(
                "Try an fp8 KV cache or a smaller quantisation first; then more memory per model."
            ),
        )
    ]


def _full_windows(frame: Frame, full: float) -> int:
    usage = frame.columns.get("kv_cache_usage_ratio", [])
    waiting = frame.columns.get("requests_waiting", [])
    pairs = zip(usage, waiting, strict=False)
    return sum(u is not None and w is not None and u >= full and w >= 1.0 for u, w in pairs)
