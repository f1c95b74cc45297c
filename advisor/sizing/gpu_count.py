"""GPU count: what the work needed at its peak, summed over time-aligned windows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.finding import Basis, Dimension, Evidence, Finding, Verdict
from advisor.message import Amount, Message, say
from advisor.sizing import documented, series
from advisor.sizing.case import FEEDING, SERVING, Case
from advisor.sizing.opinion import Opinion, settle
from telemetry.states import State

_DIMENSION = Dimension.GPU_COUNT


def judge(case: Case) -> Finding:
    """Over only where busy shares and memory, both known, fit on fewer of the same cards."""
    opinions = documented.opinions(case, _DIMENSION)
    if case.observations is not None and not case.too_short and case.cards:
        advised = tuple(o.rule for o in opinions if o.verdict is Verdict.ADVICE and o.rule)
        opinions += _measured(case, advised)
    return settle(
        case,
        _DIMENSION,
        opinions,
        otherwise=say(
            "the size of the model and its peak KV cache are not both known;"
            " name the model in the configuration's [server] section, or let the engine's"
            " metrics be read"
        ),
    )


def _measured(case: Case, advised: tuple[str, ...]) -> list[Opinion]:
    queue = _queue(case)
    if queue is not None:
        return [queue]
    unused = _unused(case)
    if unused and len(unused) < len(case.cards):
        return [_too_many(case, len(case.cards) - len(unused), unused, advised)]
    need = _need(case)
    if need is None:
        return _trains_on_all(case)
    spare = 1 if case.inventory.redundancy else 0
    enough = min(need.gpus + spare, len(case.cards))
    if enough < len(case.cards):
        return [_over(case, need, enough, advised)]
    return [
        Opinion(
            Verdict.RIGHT,
            Basis.MEASURED,
            say(
                "the work needs {enough} of {have} GPUs",
                enough=enough,
                have=len(case.cards),
            ),
            case.thresholds.number("confidence", "right"),
            rule="R19",
            evidence=need.evidence,
        )
    ]


def _trains_on_all(case: Case) -> list[Opinion]:
    """A training run spreads over the cards that it was given: are those all, and at work?"""
    trained = {uuid for d in case.demands if d.phase in FEEDING for uuid in d.gpus}
    have = {card.info.uuid for card in case.cards}
    waiting = case.hours(State.STARVED)
    if trained != have or waiting > case.hours(State.BUSY):
        return []
    return [
        Opinion(
            Verdict.RIGHT,
            Basis.MEASURED,
            say("the jobs train on all {have} GPUs", have=len(have)),
            case.thresholds.number("confidence", "documented"),
            evidence=(Evidence("gpus used", "by training jobs", len(trained), len(have)),),
        )
    ]


@dataclass(frozen=True, slots=True)
class _Need:
    gpus: int
    evidence: tuple[Evidence, ...]


def _need(case: Case) -> _Need | None:
    """Cards that carry the peak of the busy shares and the packed memory, if both are known."""
    peak = peak_busy_sum(case)
    card = min((c.memory_bytes or 0.0 for c in case.cards), default=0.0)
    sizes = [d.vram_bytes for d in case.demands]
    served = all(d.phase in SERVING and not d.upper_bound for d in case.demands)
    if peak is None or not card or not sizes or None in sizes or not served:
        return None
    by_activity = math.ceil(peak / case.thresholds.number("headroom", "busy") - 1e-9)
    by_memory = cards_for(
        [s for s in sizes if s is not None],
        card * case.thresholds.number("headroom", "vram"),
        case.thresholds.number("headroom", "process_bytes"),
    )
    evidence = (
        Evidence(
            "gpu.utilization_ratio",
            "maximum over windows of the sum over GPUs",
            round(peak, 3),
            len(case.cards),
        ),
        Evidence(
            "demand.vram_bytes",
            "peak of weights, KV cache and overhead, all jobs",
            sum(s for s in sizes if s is not None),
            card * len(case.cards),
        ),
        Evidence("gpus needed", "by activity", by_activity),
        Evidence("gpus needed", "by memory", by_memory),
    )
    return _Need(max(1, by_activity, by_memory), evidence)


def cards_for(jobs: Sequence[float], usable: float, overhead: float) -> int:
    """Cards that hold the jobs (bytes each): first fit decreasing, whole cards for the large.

    A job larger than a card is split by tensor parallelism over a power of two of cards.
    """
    cards = 0
    free: list[float] = []
    for need in sorted(jobs, reverse=True):
        size = need + overhead
        if size > usable:
            ranks = 2 ** math.ceil(math.log2(need / (usable - overhead)))
            cards += ranks
            continue
        for i, room in enumerate(free):
            if size <= room:
                free[i] -= size
                break
        else:
            free.append(usable - size)
    return cards + len(free)


def peak_busy_sum(case: Case) -> float | None:
    """The greatest sum over GPUs, at one time, of the share of time with a kernel running."""
    if case.observations is None:
        return None
    sums: dict[int, float] = defaultdict(float)
    for timeline in case.observations.gpus.values():
        column = timeline.frame.columns.get("utilization_ratio")
        if column is None or all(v is None for v in column):
            return None
        for start, value in zip(timeline.frame.start, column, strict=True):
            # Windows of one host share their starts, but for the first after a restart.
            sums[start // 300] += value or 0.0
    return max(sums.values(), default=None)


def _unused(case: Case) -> list[str]:
    """GPUs on which nothing ran and nothing was held in any window that was seen."""
    assert case.observations is not None
    unused = []
    for uuid, timeline in case.observations.gpus.items():
        states = {result.state for result in timeline.states}
        if states == {State.IDLE_FREE}:
            unused.append(uuid)
    return unused


def _over(case: Case, need: _Need, enough: int, advised: tuple[str, ...]) -> Opinion:
    free = len(case.cards) - enough
    standby = bool(case.inventory.standby)
    return Opinion(
        Verdict.RIGHT if standby else Verdict.OVER,
        Basis.MEASURED,
        say(
            "at its peak the work fits on {enough} of {have} GPUs, with headroom",
            enough=enough,
            have=len(case.cards),
        )
        if not standby
        else say("the server is declared a standby; its spare GPUs are wanted"),
        case.thresholds.number("confidence", "measured"),
        rule="R19",
        rules=advised,
        evidence=need.evidence,
        recommendation=None
        if standby
        else say(
            "Serve this load from {enough} {card}; the other {free} are free for other work.",
            enough=enough,
            card=case.cards[0].name,
            free=free,
        ),
        saving=None if standby else _saving(free),
    )


def _too_many(case: Case, used: int, unused: list[str], advised: tuple[str, ...]) -> Opinion:
    wanted = bool(case.inventory.standby or case.inventory.redundancy)
    return Opinion(
        Verdict.RIGHT if wanted else Verdict.OVER,
        Basis.MEASURED,
        say(
            "{unused} of {have} GPUs did nothing and held nothing in the whole look-back",
            unused=len(unused),
            have=len(case.cards),
        ),
        case.thresholds.number("confidence", "right"),
        rules=advised,
        evidence=(Evidence("gpus used", "over the look-back", used, len(case.cards)),),
        recommendation=None
        if wanted
        else say("Give the {free} unused GPUs other work, or move them.", free=len(unused)),
        saving=None if wanted else _saving(len(unused)),
    )


def _saving(free: int) -> Message:
    return say("frees {hours} GPU-hours a week", hours=Amount(free * 168.0, "count"))


def _queue(case: Case) -> Opinion | None:
    """Requests that wait while the GPUs are busy: more or faster cards are needed."""
    limits = case.thresholds
    peak = peak_busy_sum(case)
    waiting = [series.known(f, "requests_waiting") for f in case.frames("engine")]
    windows = sum(sum(v >= 1.0 for v in values) for values in waiting)
    total = sum(len(values) for values in waiting)
    share = windows / total if total else 0.0
    full = limits.number("headroom", "busy") * len(case.cards)
    if peak is None or peak < full or share < limits.number("cpu", "pressed_share"):
        return None
    return Opinion(
        Verdict.UNDER,
        Basis.MEASURED,
        say(
            "requests waited in {share} of the windows while the GPUs were busy",
            share=Amount(share, "ratio"),
        ),
        limits.number("confidence", "measured"),
        rule="R19",
        evidence=(
            Evidence("engine.requests_waiting", "share of windows with one", round(share, 4)),
            Evidence("gpu.utilization_ratio", "peak of the sum over GPUs", round(peak, 3), full),
        ),
        recommendation=say(
            "Try a better batching engine or a smaller quantisation first; then add a card."
        ),
    )
