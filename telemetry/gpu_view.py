"""One GPU's frame while its windows are judged: its columns, and the levels that follow."""

from __future__ import annotations

from dataclasses import dataclass

from telemetry.idle_power import learn_idle_power
from telemetry.starvation import Column, StarvationJudge
from telemetry.state import Cause, Note, Place, State, WindowState
from telemetry.thresholds import Thresholds
from telemetry.window import Frame
from telemetry.workload import Kind

TRAINS = frozenset(
    {
        Kind.TRAINING,
        Kind.FULL_FINETUNING,
        Kind.LORA_FINETUNING,
        Kind.QLORA_FINETUNING,
        Kind.FINETUNING,
        Kind.TRAINING_OR_FINETUNING,
    }
)
SERVES = frozenset({Kind.LLM_INFERENCE, Kind.LIGHT_INFERENCE, Kind.INFERENCE})

_HELPFUL = (
    "utilization_ratio_max",
    "sm_active_ratio",
    "power_watts",
    "memory_used_bytes",
    "process_count",
    "pcie_rx_bytes_per_second",
    "gap_ratio",
)


@dataclass(slots=True)
class Cells:
    """What a window that is not plainly busy is asked for; None where it was not read.

    `top` and `sm_top` are maxima, or means where no maximum was kept; `memory` is the least that
    was held, `memory_top` the most.
    """

    i: int
    seconds: int
    covered: float | None
    utilization: float | None
    top: float | None
    zero: float | None
    busy: float | None
    sm: float | None
    sm_top: float | None
    power: float | None
    power_top: float | None
    memory: float | None
    memory_top: float | None
    processes: float | None
    gap: float | None
    lost: float | None
    hot: float | None
    braked: float | None
    kind: Kind | None
    maxima: bool


class GpuView:
    """A frame with what was learned of the whole of it."""

    def __init__(
        self,
        frame: Frame,
        starvation: StarvationJudge,
        thresholds: Thresholds,
        idle_power_watts: float | None,
    ) -> None:
        self.frame = frame
        self.thresholds = thresholds
        self.starvation = starvation
        self._nothing: list[float | None] = [None] * len(frame)
        self._kept: dict[tuple[object, ...], WindowState] = {}
        self.idle_power = (
            learn_idle_power(frame, thresholds) if idle_power_watts is None else idle_power_watts
        )
        self.limit = self._last("power_limit_watts")
        total = self._last("memory_total_bytes") or 0.0
        self.held_above = max(thresholds.held_bytes, thresholds.held_ratio * total)
        self.blind = self._process_list_is_blind()
        self.unused = self._missing()
        self.near_idle = self._near_idle_watts()
        self.working = self._working_watts()

    def column(self, name: str) -> Column:
        """A column, of None where the frame lacks it."""
        return self.frame.columns.get(name, self._nothing)

    def cell(self, name: str, i: int) -> float | None:
        """One value."""
        column = self.frame.columns.get(name)
        return None if column is None else column[i]

    def is_empty(self, memory_top: float | None) -> bool:
        """Nobody was on the card, where no process was listed: no memory was held, and the list
        can be believed. A reading of use is then the driver's own, as it starts (nvml.h warns of
        its memory scrubbing in `nvmlDeviceGetUtilizationRates`)."""
        return not self.blind and memory_top is not None and memory_top <= self.held_above

    def pcie(self, i: int, suffix: str = "") -> list[tuple[str, float]]:
        """The PCIe rates that window `i` has, with their fields."""
        return [
            (name + suffix, rate)
            for name in ("pcie_rx_bytes_per_second", "pcie_tx_bytes_per_second")
            if (rate := self.cell(name + suffix, i)) is not None
        ]

    def keep(
        self,
        state: State,
        confidence: float,
        *evidence: str,
        cause: Cause | None = None,
        lost: float | None = None,
        note: Note | None = None,
        place: Place | None = None,
    ) -> WindowState:
        """A state; the same one is made once."""
        key = (state, confidence, evidence, cause, lost, note, place)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = WindowState(
                state, round(confidence, 3), cause, lost, evidence, self.unused, note, place
            )
        return kept

    def _last(self, name: str) -> float | None:
        column = self.frame.columns.get(name, ())
        return next((value for value in reversed(column) if value is not None), None)

    def _has(self, name: str) -> bool:
        column = self.frame.columns.get(name)
        return column is not None and column.count(None) < len(column)

    def _missing(self) -> tuple[str, ...]:
        missing = [name for name in _HELPFUL if not self._has(name)]
        if self.blind:
            missing.append("process_count (the list is empty while the GPU works)")
        return (*missing, *self.starvation.missing)

    def _process_list_is_blind(self) -> bool:
        """No process is listed while kernels run: the list cannot be believed here."""
        return any(
            count == 0 and busy is not None and busy >= 0.5
            for count, busy in zip(
                self.column("process_count"),
                self.column("utilization_ratio_busy_ratio"),
                strict=True,
            )
        )

    def _near_idle_watts(self) -> float | None:
        """The most that a GPU draws while nothing moves on it."""
        if self.idle_power is not None:
            span = (self.limit or 2.0 * self.idle_power) - self.idle_power
            return self.idle_power + self.thresholds.stuck_power_share * max(0.0, span)
        return None if self.limit is None else self.thresholds.stuck_power_limit_ratio * self.limit

    def _working_watts(self) -> float | None:
        """More than any idle GPU draws; None where its limit is unknown."""
        if self.limit is None:
            return None
        # Where idle power was never seen, half of the limit is the most that it can be.
        assumed = self.thresholds.idle_power_limit_ratio * self.limit
        idle = assumed if self.idle_power is None else self.idle_power
        return idle + self.thresholds.working_power_share * (self.limit - idle)
