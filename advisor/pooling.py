"""The fleet: whether the servers together are more than their work needs at any one time.

Needs are added up at the same moment, window by window; a sum of the servers' peaks would ask for
cards that are never needed at once. Memory is packed onto cards, not added up.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from advisor.assessment import Assessment
from advisor.finding import Dimension, Finding, Verdict
from advisor.message import Amount, Message, say
from advisor.sizing import series
from advisor.sizing.case import QUIET, SERVING, Case
from advisor.sizing.packing import cards_for
from advisor.sizing.thresholds import Thresholds

DOCUMENTED_INFERENCE_RATIO = 0.80
"""R43: «la fase que consume el 80 % de las horas GPU en producción»."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Inference servers with cards of one kind, taken together.

    `needed_gpus` held every moment of the time that all of them were seen in, with headroom;
    `sum_of_peaks_gpus` is what the servers need each on its own. `free` are servers that could be
    emptied onto `kept`; `moments` the windows that this rests on.
    """

    card: str
    hosts: tuple[str, ...]
    gpus: int
    needed_gpus: int
    sum_of_peaks_gpus: int
    kept: tuple[str, ...]
    free: tuple[str, ...]
    free_gpus: int
    free_memory_bytes: float
    moments: int

    @property
    def recommendation(self) -> Message | None:
        """In one sentence; None where every server is needed."""
        if not self.free:
            return None
        return say(
            "The work of {hosts} servers with {card} fits at every moment on {needed} of {gpus}"
            " GPUs: move it to {kept}, and {free} are free ({free_gpus} GPUs, {memory}).",
            hosts=len(self.hosts),
            card=self.card,
            needed=self.needed_gpus,
            gpus=self.gpus,
            kept=", ".join(self.kept),
            free=", ".join(self.free),
            free_gpus=self.free_gpus,
            memory=Amount(self.free_memory_bytes, "bytes"),
        )


@dataclass(frozen=True, slots=True)
class Group:
    """Servers of which the same is said: verdict, deciding rule and dimension."""

    verdict: Verdict
    rule: str | None
    dimensions: tuple[Dimension, ...]
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is said of all servers together.

    `inference_ratio` is inference's share of the GPU-hours of known work (None without any),
    beside the guide's 80 %; it is a figure to compare with and never a breach.
    """

    pools: tuple[Pool, ...]
    groups: tuple[Group, ...]
    inference_hours: float
    work_hours: float

    @property
    def inference_ratio(self) -> float | None:
        return self.inference_hours / self.work_hours if self.work_hours else None


@dataclass(frozen=True, slots=True)
class PoolNeed:
    """What an inference server needed at each moment in which all its GPUs were seen.

    Columns of equal length: `starts` in seconds, `busy` in cards, and bytes of each job. Arrays,
    since hundreds of servers of four weeks are held at once.
    """

    card: str
    gpus: int
    card_bytes: float
    starts: array[int]
    busy: array[float]
    memory: tuple[array[float], ...]


def pool_need(case: Case) -> PoolNeed | None:
    """None where a server does not serve, is declared to be spare, or its need is unknown."""
    past, inventory = case.past, case.inventory
    if past is None or not past.serves or inventory.standby or inventory.redundancy:
        return None
    names = {gpu.name for gpu in inventory.gpus}
    sizes = [gpu.memory_bytes for gpu in inventory.gpus if gpu.memory_bytes]
    name = next(iter(names), None)
    if len(names) != 1 or name is None or len(sizes) != len(inventory.gpus):
        return None
    moments = [m for m in past.moments if m.complete]
    if not moments:
        return None
    return PoolNeed(
        name,
        len(sizes),
        float(min(sizes)),
        array("q", (m.start for m in moments)),
        array("d", (m.busy for m in moments)),
        tuple(array("d", (m.memory[i] for m in moments)) for i in range(len(past.jobs))),
    )


@dataclass(frozen=True, slots=True)
class _Member:
    """A server of a pool: its need by time, and the cards that it needs alone."""

    host: str
    need: PoolNeed
    places: dict[int, int]
    needed: int


class FleetTeller:
    """Takes the assessments one by one, and keeps of each only what the fleet needs."""

    def __init__(self, thresholds: Thresholds | None = None) -> None:
        self._thresholds = thresholds or Thresholds.load()
        self._members: list[_Member] = []
        self._said: dict[tuple[Verdict, str | None, tuple[Dimension, ...]], list[str]] = {}
        self._hours: dict[bool, float] = {True: 0.0, False: 0.0}

    def add(self, assessment: Assessment) -> None:
        """One server."""
        member = self._member(assessment)
        if member is not None:
            self._members.append(member)
        self._said.setdefault(_said(assessment.findings), []).append(assessment.host)
        for segment in assessment.segments:
            if segment.phase not in QUIET:
                hours = (segment.end - segment.start) / 3600
                self._hours[segment.phase in SERVING] += hours

    def fleet(self) -> Fleet:
        """What is said of those that were added."""
        by_card: dict[str, list[_Member]] = {}
        for member in self._members:
            by_card.setdefault(member.need.card, []).append(member)
        pools = (self._pool(card, members) for card, members in sorted(by_card.items()))
        groups = (Group(*key, tuple(sorted(hosts))) for key, hosts in self._said.items())
        return Fleet(
            tuple(pool for pool in pools if pool is not None),
            tuple(sorted(groups, key=lambda g: (-len(g.hosts), g.hosts))),
            self._hours[True],
            self._hours[True] + self._hours[False],
        )

    def _member(self, assessment: Assessment) -> _Member | None:
        need = assessment.pool_need
        if need is None:
            return None
        places = {start: i for i, start in enumerate(need.starts)}
        alone = self._needed(([(need, i)] for i in range(len(need.starts))), need.card_bytes)
        return _Member(assessment.host, need, places, min(alone, need.gpus))

    def _pool(self, card: str, members: Sequence[_Member]) -> Pool | None:
        shared = set.intersection(*(set(m.places) for m in members))
        # Where the servers were not seen at the same time, nothing can be said of them together.
        if len(members) < 2 or len(shared) * 2 < max(len(m.places) for m in members):
            return None
        size = min(m.need.card_bytes for m in members)
        together = ([(m.need, m.places[at]) for m in members] for at in sorted(shared))
        needed = self._needed(together, size)
        total = sum(m.need.gpus for m in members)
        kept, free = _kept(members, needed)
        return Pool(
            card,
            tuple(m.host for m in members),
            total,
            min(needed, total),
            sum(m.needed for m in members),
            tuple(m.host for m in kept),
            tuple(m.host for m in free),
            sum(m.need.gpus for m in free),
            sum(m.need.gpus * m.need.card_bytes for m in free),
            len(shared),
        )

    def _needed(self, moments: Iterable[Sequence[tuple[PoolNeed, int]]], card_bytes: float) -> int:
        """Cards that hold every moment: time by its percentile, memory packed at its maximum.

        A moment is the servers' needs, each with its place in their columns.
        """
        limits = self._thresholds
        room = card_bytes * limits.number("headroom", "vram")
        context = limits.number("headroom", "process_bytes")
        busy: list[float] = []
        packed: dict[tuple[float, ...], int] = {}
        for together in moments:
            busy.append(sum(need.busy[i] for need, i in together))
            # To a tenth of a gigabyte upwards, so that alike moments are packed once.
            jobs = (job[i] for need, i in together for job in need.memory)
            key = tuple(sorted(_up(size) for size in jobs if size > 0))
            if key not in packed:
                packed[key] = cards_for(key, room, context)
        peak = series.percentile(busy, limits.number("statistic", "compute"))
        by_time = math.ceil(peak / limits.number("headroom", "busy") - 1e-9)
        return max(1, by_time, *packed.values())


def _up(size: float) -> float:
    return -(-size // 1e8) * 1e8


def _kept(members: Sequence[_Member], needed: int) -> tuple[list[_Member], list[_Member]]:
    """The servers that carry the work, the busiest of their cards first, and those left over."""
    kept: list[_Member] = []
    free: list[_Member] = []
    ordered = sorted(members, key=lambda m: (-m.needed / m.need.gpus, -m.need.gpus, m.host))
    for member in ordered:
        (kept if sum(m.need.gpus for m in kept) < needed else free).append(member)
    return kept, free


def _said(
    findings: Sequence[Finding],
) -> tuple[Verdict, str | None, tuple[Dimension, ...]]:
    """The overall verdict and its rule, with the dimensions that say the same."""
    overall = next((f for f in findings if f.dimension is Dimension.OVERALL), None)
    verdict = Verdict.ABSTAIN if overall is None else overall.verdict
    alike = tuple(
        f.dimension
        for f in findings
        if f.dimension is not Dimension.OVERALL
        and f.verdict is verdict
        and verdict in (Verdict.OVER, Verdict.UNDER, Verdict.IDLE)
    )
    return verdict, None if overall is None else overall.rule, alike


def inference_sentence(fleet: Fleet) -> Message | None:
    """Inference's share beside the documented one (R43); None where no work is known."""
    if fleet.inference_ratio is None:
        return None
    return say(
        "inference took {share} of the GPU-hours of known work; the guide says {documented}",
        share=Amount(fleet.inference_ratio, "ratio"),
        documented=Amount(DOCUMENTED_INFERENCE_RATIO, "ratio"),
    )
