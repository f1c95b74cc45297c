"""One server to be judged: what it is, what it did, and the rules it is held against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from advisor.assessment import GpuTimeline, Observations
from advisor.catalogue import Gpu, find_gpu
from advisor.demand import JobDemand
from advisor.phase import Phase
from advisor.profiles import Profiles
from advisor.sizing.thresholds import Thresholds
from telemetry.inventory import GpuInfo, Inventory
from telemetry.states import Cause, State
from telemetry.window import Frame

if TYPE_CHECKING:
    from advisor.sizing.load import LookBack
    from advisor.sizing.whatif import Replay

QUIET = frozenset({Phase.IDLE, Phase.UNKNOWN})
FEEDING = frozenset(
    {Phase.TRAINING, Phase.FULL_FINETUNING, Phase.LORA_FINETUNING, Phase.QLORA_FINETUNING}
    | {Phase.FINETUNING, Phase.TRAINING_OR_FINETUNING}
)
"""Phases that read a data set while they run."""
SERVING = frozenset({Phase.LLM_INFERENCE, Phase.LIGHT_INFERENCE, Phase.INFERENCE})


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU of the server, and what is publicly known of it (None where it is unknown)."""

    info: GpuInfo
    model: Gpu | None

    @property
    def memory_bytes(self) -> float | None:
        """What the card reports, else what the catalogue says."""
        if self.info.memory_bytes is not None:
            return float(self.info.memory_bytes)
        return None if self.model is None else float(self.model.memory_bytes)

    @property
    def name(self) -> str:
        """For people."""
        return self.model.name if self.model else (self.info.name or self.info.uuid)


@dataclass(frozen=True)
class Case:
    """The server in question.

    `observations` is None for a check of the hardware as it stands. `phases` says which phases
    the server runs and for what share of its working hours (declared ones: shares are equal).
    """

    inventory: Inventory
    profiles: Profiles
    thresholds: Thresholds
    observations: Observations | None = None
    phases: Mapping[Phase, float] = field(default_factory=dict)
    demands: tuple[JobDemand, ...] = ()
    parameters: tuple[float, ...] = ()
    precisions: frozenset[str] = frozenset()
    gpus_of_one_model: int | None = None
    """Cards on which processes of one model were last seen; for a check without demands."""

    @property
    def host(self) -> str:
        """The server's name."""
        return self.inventory.host

    @cached_property
    def cards(self) -> tuple[Card, ...]:
        """The server's GPUs."""
        return tuple(Card(gpu, _catalogued(gpu)) for gpu in self.inventory.gpus)

    @cached_property
    def sliced(self) -> bool:
        """Whether a card is cut into instances (MIG): what its others hold may not be seen."""
        seen = () if self.observations is None else self.observations.gpus
        return any(card.info.mig for card in self.cards) or any("/" in uuid for uuid in seen)

    def memory_of(self, uuid: str) -> float | None:
        """Of a card or of a MIG instance (`UUID/GI/CI`); None where it does not tell."""
        whole, *parts = uuid.split("/")
        card = next((card for card in self.cards if card.info.uuid == whole), None)
        if card is None or not parts:
            return None if card is None else card.memory_bytes
        of = (
            size
            for i in card.info.mig
            if [str(i.gi), str(i.ci)] == parts
            if (size := i.memory_bytes)
        )
        return next((float(size) for size in of), None)

    @property
    def total_vram_bytes(self) -> float | None:
        """Memory of all cards together, None where one of them does not tell."""
        sizes = [card.memory_bytes for card in self.cards]
        known = [size for size in sizes if size is not None]
        return sum(known) if known and len(known) == len(sizes) else None

    @property
    def coverage_ratio(self) -> float:
        """Share of the period that is covered by samples; 1 for a check of the inventory."""
        return 1.0 if self.observations is None else self.observations.coverage_ratio

    @property
    def too_short(self) -> bool:
        """Whether too little was seen for any finding about the work."""
        if self.observations is None:
            return False
        return self.observations.covered_hours < self.thresholds.number(
            "coverage", "hours"
        ) or self.coverage_ratio < self.thresholds.number("coverage", "ratio")

    @property
    def short_of_a_week(self) -> bool:
        """Whether a working week has not been seen, so that nothing may be called over."""
        if self.observations is None:
            return False
        return self.observations.covered_hours < self.thresholds.number("coverage", "week_hours")

    @cached_property
    def confidence_cap(self) -> float:
        """The most that a finding on this data may claim."""
        cap = 1.0
        if self.short_of_a_week:
            cap = min(cap, self.thresholds.number("coverage", "short_confidence"))
        if self.observations is not None and _means_only(self.observations.gpus.values()):
            cap = min(cap, self.thresholds.number("coverage", "means_only_confidence"))
        return cap

    @property
    def main_phase(self) -> Phase | None:
        """The phase with most working hours."""
        working = {p: share for p, share in self.phases.items() if p not in QUIET}
        return max(working, key=lambda p: working[p]) if working else None

    @cached_property
    def ruled_phases(self) -> frozenset[Phase]:
        """The phases that documented rules are asked for: a passing trial makes no trainer."""
        least = self.thresholds.number("usage", "phase_share")
        return frozenset(p for p, share in self.phases.items() if share >= least)

    @property
    def feeds_on_data(self) -> bool:
        """Whether a phase that reads a data set runs here."""
        return any(p in FEEDING for p in self.phases)

    @property
    def only_serves(self) -> bool:
        """Whether all that runs here is inference."""
        working = [p for p in self.phases if p not in QUIET]
        return bool(working) and all(p in SERVING for p in working)

    def frames(self, measurement: str) -> list[Frame]:
        """What was seen of the host, its disks, mounts or NICs."""
        return [] if self.observations is None else self.observations.frames.get(measurement, [])

    def hours(self, *states: State) -> float:
        """GPU-hours of all GPUs in any of the states."""
        return sum(self._seconds.get(state, 0) for state in states) / 3600

    @cached_property
    def _seconds(self) -> Mapping[State, int]:
        found: dict[State, int] = {}
        for timeline in self._timelines():
            for seconds, result in zip(timeline.frame.seconds, timeline.states, strict=True):
                found[result.state] = found.get(result.state, 0) + seconds
        return found

    def lost_hours(self, cause: Cause) -> float:
        """GPU-hours lost to a cause."""
        return (
            sum(
                seconds * (lost or 0.0)
                for timeline in self._timelines()
                for seconds, result in zip(timeline.frame.seconds, timeline.states, strict=True)
                if result.cause is cause and (lost := result.lost_ratio) is not None
            )
            / 3600
        )

    def lost_ratio(self, *causes: Cause) -> float | None:
        """Time lost to the causes as a share of the live jobs' covered time."""
        live = self.hours(State.BUSY, State.STARVED)
        return sum(self.lost_hours(c) for c in causes) / live if live > 0 else None

    @cached_property
    def past(self) -> LookBack | None:
        """What the work took, window by window; None where its need is not known."""
        from advisor.sizing.load import look_back  # which reads cases

        return None if self.too_short or self.idle else look_back(self)

    @cached_property
    def busy_sums(self) -> list[float]:
        """The GPUs' shares of time with a kernel, added up in each bin of time."""
        from advisor.sizing.load import busy_sums  # which reads cases

        return busy_sums(self)

    @cached_property
    def replays(self) -> tuple[Replay, ...]:
        """The look-back on smaller hardware."""
        from advisor.sizing.whatif import replays  # which reads cases

        return () if self.past is None else replays(self, self.past)

    @cached_property
    def idle(self) -> bool:
        """Whether next to nothing ran, which tells nothing of what work would need."""
        busy = self.hours(State.BUSY, State.STARVED)
        return busy < self.thresholds.number("usage", "idle_busy_ratio") * self.hours(*State)

    @property
    def spare_cards(self) -> int:
        """Cards beyond the need that are declared to be wanted."""
        return 1 if self.inventory.redundancy else 0

    def _timelines(self) -> Iterator[GpuTimeline]:
        return iter(() if self.observations is None else self.observations.gpus.values())


def _catalogued(gpu: GpuInfo) -> Gpu | None:
    return None if gpu.name is None else find_gpu(gpu.name, gpu.memory_bytes)


def _means_only(timelines: Iterable[GpuTimeline]) -> bool:
    frames = [t.frame for t in timelines]
    columns = [f.columns.get("utilization_ratio_max") for f in frames if len(f)]
    return bool(columns) and all(c is None or all(v is None for v in c) for c in columns)
