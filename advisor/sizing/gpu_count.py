"""GPU count: what the work needed at its peak, replayed on fewer of the same cards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.finding import Basis, Dimension, Evidence, Finding, Step, Verdict
from advisor.message import Amount, Message, say
from advisor.sizing import documented, series, well_used
from advisor.sizing.case import FEEDING, Case
from advisor.sizing.load import LookBack
from advisor.sizing.opinion import Opinion, settle
from advisor.sizing.packing import cards_for
from advisor.sizing.whatif import fewest
from telemetry.states import State

_DIMENSION = Dimension.GPU_COUNT
_WEEK_HOURS = 168.0


def judge(case: Case) -> Finding:
    """Over only where fewer of the same cards would have served the whole look-back."""
    opinions = documented.opinions(case, _DIMENSION)
    if case.observations is not None and not case.too_short and case.cards:
        advised = tuple(o.rule for o in opinions if o.verdict is Verdict.ADVICE and o.rule)
        measured = _measured(case, advised)
        if any(o.rule == "R19" and o.verdict is Verdict.RIGHT for o in measured):
            # Fewer cards that a guide advises are refuted by the need that was measured.
            opinions = [o for o in opinions if o.verdict is not Verdict.ADVICE]
        opinions += measured
    finding = settle(
        case,
        _DIMENSION,
        opinions,
        otherwise=say("the cards are cut into MIG instances, which are not counted as cards")
        if case.sliced
        else say(
            "the size of the model and its peak KV cache are not both known;"
            " name the model in the configuration's [server] section, or let the engine's"
            " metrics be read"
        ),
    )
    return replace(finding, what_if=tuple(r.what_if for r in case.replays))


def _measured(case: Case, advised: tuple[str, ...]) -> list[Opinion]:
    queue = well_used.queue(case)
    if queue is not None:
        return [queue]
    unused = [] if case.idle else _unused(case)
    if unused and len(unused) < len(case.cards):
        return [_too_many(case, len(case.cards) - len(unused), unused, advised)]
    need = _need(case)
    if need is None:
        return _trains_on_all(case)
    if need.gpus + case.spare_cards < len(case.cards):
        return [_over(case, need, need.gpus + case.spare_cards, advised)]
    spare = case.spare_cards and need.gpus < len(case.cards)
    return [
        Opinion(
            Verdict.RIGHT,
            Basis.MEASURED,
            say("the work needs {enough} of {have} GPUs", enough=need.gpus, have=len(case.cards))
            if not spare
            else say(
                "the work needs {enough} of {have} GPUs; one more is the declared spare",
                enough=need.gpus,
                have=len(case.cards),
            ),
            case.thresholds.number("confidence", "right"),
            rule="R19",
            rules=advised,
            evidence=(*need.evidence, *well_used.evidence(case)),
        )
    ]


def _trains_on_all(case: Case) -> list[Opinion]:
    """A training run spreads over the cards that it was given: are those all, and at work?"""
    trained = {uuid for d in case.demands if d.phase in FEEDING for uuid in d.gpus}
    have = {card.info.uuid for card in case.cards}
    waiting, busy = case.hours(State.STARVED), case.hours(State.BUSY)
    if trained != have or busy <= 0.0 or waiting > busy:
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
    """The fewest of the same cards that would have served, where engines tell what they need."""
    past = case.past
    if past is None or not past.serves or not case.busy_sums or case.sliced:
        return None
    if len({card.name for card in case.cards}) > 1:
        return None
    gpus = fewest(case) or len(case.cards)
    return _Need(gpus, _evidence(case, past, gpus))


def _evidence(case: Case, past: LookBack, gpus: int) -> tuple[Evidence, ...]:
    limits = case.thresholds
    sizes = [job.vram_bytes for job in past.jobs if job.vram_bytes is not None]
    card = min((c.memory_bytes or 0.0 for c in case.cards), default=0.0)
    told = series.percentile(case.busy_sums, limits.number("statistic", "compute"))
    shown = [
        Evidence(
            "gpu.utilization_ratio", "P99.5 of the sum over GPUs", round(told, 3), len(case.cards)
        ),
        Evidence(
            "demand.vram_bytes",
            "peak of weights and KV cache, all jobs",
            sum(sizes),
            card * len(case.cards),
        ),
        Evidence("gpus needed", "by the look-back replayed", gpus, len(case.cards)),
    ]
    if card:
        usable = card * limits.number("headroom", "vram")
        packed = cards_for(sizes, usable, limits.number("headroom", "process_bytes"))
        shown.append(Evidence("gpus needed", "by memory", packed, len(case.cards)))
    for replay in case.replays:
        if replay.option.same_card and replay.option.count == gpus:
            shown.append(
                Evidence(
                    "peak load",
                    "P99.5 on that number of GPUs",
                    replay.what_if.peak_load_ratio,
                    limits.number("headroom", "busy"),
                )
            )
    return tuple(shown)


def _unused(case: Case) -> list[str]:
    """Cards on which nothing ran and nothing was held in any window that could be told.

    A card of which more than a few windows are unknown is not called unused; an instance of MIG is
    no card.
    """
    assert case.observations is not None
    unused = []
    for card in case.cards:
        timeline = case.observations.gpus.get(card.info.uuid)
        if timeline is None or not timeline.states:
            continue
        states = [result.state for result in timeline.states]
        free = states.count(State.IDLE_FREE)
        least = case.thresholds.number("usage", "unused_known_ratio") * len(states)
        if free + states.count(State.UNKNOWN) == len(states) and free >= least:
            unused.append(card.info.uuid)
    return unused


def _over(case: Case, need: _Need, enough: int, advised: Sequence[str]) -> Opinion:
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
        case.thresholds.number("confidence", "measured")
        if case.past is not None and case.past.counted
        else case.thresholds.number("confidence", "right"),
        rule="R19",
        rules=tuple(advised),
        evidence=need.evidence,
        recommendation=None
        if standby
        else say(
            "Serve this load from {enough} {card}; the other {free} are free for other work.",
            enough=enough,
            card=case.cards[0].name,
            free=free,
        ),
        step=Step.FEWER_GPUS,
        saving=None if standby else _saving(free),
        gpu_hours_per_week=None if standby else free * _WEEK_HOURS,
    )


def _too_many(case: Case, used: int, unused: list[str], advised: tuple[str, ...]) -> Opinion:
    wanted = bool(case.inventory.standby) or len(unused) <= case.spare_cards
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
        step=Step.FEWER_GPUS,
        saving=None if wanted else _saving(len(unused)),
        gpu_hours_per_week=None if wanted else len(unused) * _WEEK_HOURS,
    )


def _saving(free: int) -> Message:
    return say("frees {hours} GPU-hours a week", hours=Amount(free * _WEEK_HOURS, "count"))
