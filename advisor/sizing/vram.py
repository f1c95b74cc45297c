"""VRAM: what the work needed of the cards' memory, apart from what was reserved."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.demand import JobDemand
from advisor.finding import Basis, Demand, Dimension, Evidence, Finding, Step, Verdict
from advisor.message import Amount, Value, say
from advisor.sizing import documented, series, well_used
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion, settle
from advisor.sizing.whatif import fewest, smaller_class
from telemetry.window import Frame

_DIMENSION = Dimension.VRAM
_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0}
"""Of a parameter: the least that a format takes. 4-bit formats differ and are the planner's."""


def judge(case: Case) -> Finding:
    """Under where weights cannot fit or the KV cache was full while requests waited.

    Over where the peak, with headroom, fits on smaller hardware that would have served; right
    where the need is known.
    """
    opinions = documented.opinions(case, _DIMENSION) + _cannot_hold(case)
    if case.observations is not None and not case.too_short:
        opinions += _full(case)
        judged = [_job(case, demand) for demand in case.demands]
        if judged and all(o is not None for o in judged):
            opinions += [*_over(case), *(o for o in judged if o is not None)]
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
    sizes = [case.memory_of(uuid) for uuid in demand.gpus]
    known = [s for s in sizes if s is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def _job(case: Case, demand: JobDemand) -> Opinion | None:
    capacity = _capacity(case, demand)
    if demand.vram_bytes is None or capacity is None:
        return None
    limits = case.thresholds
    share = demand.vram_bytes / capacity
    if demand.upper_bound and share > 1.0:
        return None  # an engine that keeps a part in host memory: whether it must is not known
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
        rule=None if demand.upper_bound else "R19",
        evidence=evidence,
        recommendation=say("A card with less memory would do for this work.") if roomy else None,
        step=Step.SMALLER_CLASS,
        demand=told,
    )


def _over(case: Case) -> list[Opinion]:
    """Where less hardware would have served, and half of the memory was not needed."""
    past, capacity = case.past, case.total_vram_bytes
    if past is None or capacity is None or not past.serves or case.inventory.standby:
        return []
    fewer, other = fewest(case), smaller_class(case)
    options = [other.option] if other is not None else []
    if fewer is not None and fewer + case.spare_cards < len(case.cards):
        enough = fewer + case.spare_cards
        same = (r.option for r in case.replays if r.option.same_card)
        options += [option for option in same if option.count == enough]
    needs = [job.vram_bytes or 0.0 for job in past.jobs]
    need, limits = sum(needs), case.thresholds
    less = [o for o in options if o.count * o.memory_bytes < capacity]
    if not less or need > capacity * limits.number("vram", "small_need"):
        return []
    best = min(less, key=lambda option: option.count * option.memory_bytes)
    sure = min(limits.number("confidence", "right"), *(job.confidence for job in past.jobs))
    return [
        Opinion(
            Verdict.OVER,
            Basis.MEASURED,
            say(
                "the work needed {need} of {capacity} at its peak; {count} {card} would hold it",
                need=Amount(need, "bytes"),
                capacity=Amount(capacity, "bytes"),
                count=best.count,
                card=best.name,
            ),
            sure,
            rule="R19",
            evidence=(
                Evidence("demand.vram_bytes", "peak, all jobs", need, capacity),
                Evidence("memory", "of the smaller option", best.count * best.memory_bytes),
            ),
            recommendation=say(
                "Give the free memory to other models, or serve from {count} {card}.",
                count=best.count,
                card=best.name,
            ),
            step=Step.CONSOLIDATION,
            demand=Demand(need / len(case.cards), past.jobs[0].source, sure),
        )
    ]


def _cannot_hold(case: Case) -> list[Opinion]:
    """Declared inference whose weights, in the precision declared, exceed all cards together."""
    capacity = case.total_vram_bytes
    if case.observations is not None or capacity is None or not case.only_serves:
        return []
    if len(case.parameters) != 1 or len(case.precisions) != 1:
        return []
    width = _BYTES.get(next(iter(case.precisions)))
    if width is None or case.parameters[0] * width <= capacity:
        return []
    weights = case.parameters[0] * width
    return [
        Opinion(
            Verdict.UNDER,
            Basis.PHYSICAL,
            say(
                "the weights alone take {weights}, and the cards have {capacity}",
                weights=Amount(weights, "bytes"),
                capacity=Amount(capacity, "bytes"),
            ),
            case.thresholds.number("confidence", "physical"),
            rule="R45",
            evidence=(Evidence("weights", "parameters x bytes", weights, capacity),),
            recommendation=say(
                "Load the model in 8 or 4 bits, or give it cards with more memory together."
            ),
            step=Step.QUANTISATION,
        )
    ]


def _full(case: Case) -> list[Opinion]:
    limits = case.thresholds
    worst = max((_full_windows(case, frame) for frame in case.frames("engine")), default=0)
    if worst < limits.number("vram", "waiting_windows"):
        return []
    given = _given(case)
    more = given is not None and given < limits.number("vram", "given")
    evidence = [Evidence("engine.kv_cache_usage_ratio", "windows full while requests wait", worst)]
    if given is not None:
        level = limits.number("vram", "given")
        evidence.append(Evidence("gpu.memory_used_bytes", "maximum over total", given, level))
    evidence += well_used.evidence(case)
    return [
        Opinion(
            Verdict.ADVICE if more else Verdict.UNDER,
            Basis.MEASURED,
            say(
                "the KV cache was full while requests waited, in {windows} windows of 5 minutes",
                windows=worst,
            ),
            limits.number("confidence", "measured"),
            rule="R19",
            rules=("R22",),
            evidence=tuple(evidence),
            recommendation=say("The engine was given a part of the card alone: give it more.")
            if more
            else say(
                "Try an fp8 KV cache or a smaller quantisation first; then more memory per model."
            ),
            step=Step.ENGINE if more else Step.QUANTISATION,
        )
    ]


def _given(case: Case) -> float | None:
    """The most that was held of a card with an engine, as a share of the card."""
    held = []
    for card in case.cards:
        timeline = case.observations.gpus.get(card.info.uuid) if case.observations else None
        if timeline is None or card.memory_bytes is None:
            continue
        peak = series.maximum(timeline.frame, "memory_used_bytes_max", "memory_used_bytes")
        if peak is not None:
            held.append(peak / card.memory_bytes)
    return round(max(held), 4) if held else None


def _full_windows(case: Case, frame: Frame) -> int:
    """Windows with a full cache while requests waited, counted second by second where it was."""
    limits = case.thresholds
    saturated = frame.columns.get("saturated_ratio")
    if saturated is not None and any(share is not None for share in saturated):
        level = limits.number("vram", "saturated_share")
        return sum(share is not None and share >= level for share in saturated)
    full = limits.number("vram", "kv_full")
    usage: Sequence[float | None] = frame.columns.get("kv_cache_usage_ratio", [])
    waiting = frame.columns.get("requests_waiting", [])
    pairs = zip(usage, waiting, strict=False)
    return sum(u is not None and w is not None and u >= full and w >= 1.0 for u, w in pairs)
