"""What if: the look-back, replayed on smaller hardware.

Memory traffic is held against bandwidth, arithmetic against dense throughput. Between two kinds of
card that is an estimate, and its uncertainty is told beside it; between fewer and more of the same
card it is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from advisor.assessment import Work
from advisor.catalogue import find_model
from advisor.finding import WhatIf
from advisor.message import Amount, Message, say
from advisor.phase import Phase
from advisor.sizing import series
from advisor.sizing.case import FEEDING, Case
from advisor.sizing.load import STEP, LookBack
from advisor.sizing.options import Option, documented
from advisor.sizing.packing import cards_for


@dataclass(frozen=True, slots=True)
class Replay:
    """The look-back on one option, and what is published of it."""

    option: Option
    what_if: WhatIf

    @property
    def fits(self) -> bool:
        """Whether every constraint holds with headroom, the conversion at its worst."""
        return self.what_if.fits


def replays(case: Case, past: LookBack) -> tuple[Replay, ...]:
    """One a smaller option; none where no window saw all GPUs, or only slices of cards were."""
    if case.sliced or not any(moment.complete for moment in past.moments):
        return ()
    filled: dict[str, list[float]] = {}
    found = []
    for option in _options(case, past):
        if option.name not in filled:
            filled[option.name] = _cards_filled(past, option)
        found.append(_replay(case, past, option, filled[option.name]))
    return tuple(found)


def _options(case: Case, past: LookBack) -> Iterator[Option]:
    cards = case.cards
    sizes = [card.memory_bytes for card in cards]
    names = {card.name for card in cards}
    smallest = min((s for s in sizes if s is not None), default=0.0)
    if len(names) == 1 and None not in sizes and past.serves:
        for count in range(1, len(cards)):
            yield Option(cards[0].model, cards[0].name, count, smallest)
    # Another card is only compared where what is there is known.
    if cards and all(card.model is not None for card in cards):
        for option in documented({job.phase for job in past.jobs}):
            if option.name not in names and option.count <= max(len(cards), 4):
                yield option


def _replay(case: Case, past: LookBack, option: Option, filled: Sequence[float]) -> Replay:
    limits = case.thresholds
    room = option.memory_bytes * limits.number("headroom", "vram")
    context = limits.number("headroom", "process_bytes")
    most = limits.number("headroom", "busy")
    doubt = 1.0 if option.same_card else limits.number("conversion", "factor")
    loads = [cards / option.count for cards in filled]
    packed: dict[tuple[float, ...], bool] = {}
    served = complete = 0
    backlog = queued = 0.0
    for moment, load in zip(past.moments, loads, strict=True):
        need = moment.memory
        if need not in packed:
            packed[need] = cards_for([m for m in need if m > 0], room, context) <= option.count
        # Work that does not fit into its window waits for the next.
        if load > 1.0 or backlog > 0.0:
            backlog = max(0.0, backlog + (load - 1.0) * STEP)
            queued = max(queued, backlog)
        if moment.complete:
            complete += 1
            served += packed[need] and load <= 1.0
    peak = series.percentile(loads, limits.number("statistic", "compute"))
    memory = max(sum(moment.memory) for moment in past.moments)
    obstacles = tuple(_obstacles(case, past, option, doubt))
    whole = all(packed.values())
    fits = not obstacles and whole and peak * doubt <= most and queued <= 0.0
    what_if = WhatIf(
        gpu=option.name,
        count=option.count,
        rule=option.rule,
        served_ratio=round(served / complete, 4) if complete else 0.0,
        peak_load_ratio=round(peak, 4),
        peak_load_ratio_at_worst=round(peak * doubt, 4),
        memory_headroom_ratio=round(1.0 - memory / (option.memory_bytes * option.count), 4),
        queued_seconds=round(queued, 1),
        frees=len(case.cards) - option.count if option.same_card else len(case.cards),
        fits=fits,
        obstacles=obstacles,
    )
    return Replay(option, what_if)


def _cards_filled(past: LookBack, option: Option) -> list[float]:
    """How many of the option's cards each moment would have filled, however many it has."""
    gpu = option.gpu
    bandwidth = None if gpu is None else gpu.bandwidth_bytes_per_second
    flops = None if gpu is None else gpu.dense_bf16_flops
    by_time = option.same_card and not (past.counted and past.tokens_per_second)
    found = []
    for moment in past.moments:
        shares = [moment.busy] if by_time else []
        if bandwidth and moment.traffic is not None:
            shares.append(moment.traffic / bandwidth)
        if flops and moment.arithmetic is not None:
            shares.append(moment.arithmetic / flops)
        found.append(max(shares) if shares else moment.busy)
    return found


def _obstacles(case: Case, past: LookBack, option: Option, doubt: float) -> Iterator[Message]:
    """What else keeps the work off the option."""
    gpu = option.gpu
    if gpu is None or option.same_card:
        yield from _slow(case, past, option, doubt)
        return
    if "bf16" in case.precisions and not gpu.bf16:
        yield say("the card has no BF16")
    if "fp8" in case.precisions and not gpu.fp8:
        yield say("the card has no FP8")
    if option.count > 1 and not gpu.has_nvlink and any(j.phase in FEEDING for j in past.jobs):
        yield say("the card has no NVLink for a job on several cards")
    yield from _slow(case, past, option, doubt)


def _slow(case: Case, past: LookBack, option: Option, doubt: float) -> Iterator[Message]:
    """Tokens must not come slower than they did: a step reads the weights and the whole cache."""
    if past.tokens_per_second is None or option.gpu is None:
        return
    for job in past.jobs:
        if job.vram_bytes is None or job.phase is not Phase.LLM_INFERENCE:
            continue
        ranks = max(_ranks(job.model, option.count), default=1)
        if option.same_card and ranks >= len(job.gpus):
            continue
        # Half of the roof is what engines reach (see the source in thresholds.toml).
        reached = case.thresholds.number("conversion", "roof_reached")
        roof = ranks * option.gpu.bandwidth_bytes_per_second / job.vram_bytes
        speed = roof * reached / doubt
        if speed < past.tokens_per_second:
            yield say(
                "a request would get {speed} tokens a second, fewer than the {now} that it got",
                speed=Amount(speed, "count"),
                now=Amount(past.tokens_per_second, "count"),
            )


def _ranks(model: str | None, most: int) -> Sequence[int]:
    from advisor.planner import tensor_parallel_counts

    found = None if model is None else find_model(model)
    return [1] if found is None else tensor_parallel_counts(found, most)


def work(case: Case) -> tuple[Work, ...]:
    """What the work took, window by window, in the cards that are there; empty where its need is
    not known."""
    past, cards = case.past, case.cards
    sizes = [card.memory_bytes for card in cards if card.memory_bytes is not None]
    if past is None or not sizes or len({card.name for card in cards}) > 1:
        return ()
    one = Option(cards[0].model, cards[0].name, 1, min(sizes))
    filled = _cards_filled(past, one)
    return tuple(
        Work(m.start, cards, sum(m.memory)) for m, cards in zip(past.moments, filled, strict=True)
    )


def fewest(case: Case) -> int | None:
    """The fewest of the same cards that would have served; None where no fewer would."""
    return min(
        (r.option.count for r in case.replays if r.option.same_card and r.fits), default=None
    )


def smaller_class(case: Case) -> Replay | None:
    """The smallest documented option of a smaller card that would have served, or None.

    Smaller is: less bandwidth, arithmetic and power than the cards that the work needs today.
    """
    model = case.cards[0].model if case.cards else None
    if model is None or model.dense_bf16_flops is None or len({c.name for c in case.cards}) > 1:
        return None
    count = fewest(case) or len(case.cards)
    found = []
    for replay in case.replays:
        gpu, many = replay.option.gpu, replay.option.count
        if replay.option.same_card or gpu is None or not replay.fits or not gpu.dense_bf16_flops:
            continue
        pairs = (
            (gpu.bandwidth_bytes_per_second, model.bandwidth_bytes_per_second),
            (gpu.dense_bf16_flops, model.dense_bf16_flops),
            (gpu.power_watts, model.power_watts),
        )
        if all(many * its < count * ours for its, ours in pairs):
            found.append((many * gpu.power_watts, replay))
    return min(found, key=lambda pair: pair[0])[1] if found else None
