"""Windows become states: nobody else decides what is idle, stuck or starved.

Pure functions on frames of either tier. They judge from maxima and shares, never from an average
alone (a job that computes one second in ten is alive), work with the columns that exist, and name
those that would have helped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from telemetry.activity import active_state, busy_state
from telemetry.chains import CHAINS
from telemetry.gpu_view import SERVES, TRAINS, Cells, GpuView
from telemetry.idleness import idle_state
from telemetry.places import Surroundings
from telemetry.runs import Candidates
from telemetry.starvation import Column, StarvationJudge
from telemetry.state import Cause, Note, Place, State, WindowState
from telemetry.thresholds import Thresholds
from telemetry.window import Frame
from telemetry.workload import Kind

__all__ = [
    "FIELDS",
    "HOST_FIELDS",
    "SERVES",
    "TRAINS",
    "Cause",
    "Classifier",
    "Jobs",
    "Note",
    "Place",
    "State",
    "Surroundings",
    "WindowState",
]

_WALKED = (
    "covered_seconds",
    "utilization_ratio",
    "utilization_ratio_max",
    "utilization_ratio_zero_ratio",
    "utilization_ratio_busy_ratio",
    "sm_active_ratio",
    "sm_active_ratio_max",
    "power_watts",
    "power_watts_max",
    "memory_used_bytes",
    "memory_used_bytes_min",
    "memory_used_bytes_max",
    "process_count",
    "gap_ratio",
    "gap_lost_ratio",
    "throttle_thermal_ratio",
    "throttle_power_ratio",
)
FIELDS: tuple[str, ...] = (
    *_WALKED,
    "memory_total_bytes",
    "power_limit_watts",
    "pcie_rx_bytes_per_second",
    "pcie_rx_bytes_per_second_max",
    "pcie_tx_bytes_per_second",
    "pcie_tx_bytes_per_second_max",
    "nvlink_rx_bytes_per_second",
    "nvlink_tx_bytes_per_second",
    "pcie_link_generation",
    "pcie_link_width",
    "tensor_active_ratio_max",
    "process_memory_bytes",
    "job_computing_ratio_busy_ratio",
    "job_read_bytes_per_second",
    "job_write_bytes_per_second",
    *(f"gap_{chain.name}_ratio" for chain in CHAINS),
    *(f"signal_{chain.name}_ratio" for chain in CHAINS if chain.of_job),
)
"""Columns of a GPU's frame that the states look at."""
HOST_FIELDS: tuple[str, ...] = tuple(
    f"signal_{chain.name}_ratio" for chain in CHAINS if not chain.of_job
)
"""Columns of the host's frame that the states look at."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """What is known of the processes on one GPU, one cell a window; None where unknown.

    `processor_share` is the share of the host's threads that they keep busy.
    """

    kinds: Sequence[Kind | None] | None = None
    processor_share: Column | None = None


class Classifier:
    """Gives each window of a GPU its state. Remembers nothing between calls."""

    def __init__(self, thresholds: Thresholds | None = None) -> None:
        """Loads what Talla ships where nothing is given."""
        self._thresholds = thresholds or Thresholds.load()

    def classify(
        self,
        gpu: Frame,
        surroundings: Surroundings | None = None,
        jobs: Jobs | None = None,
        *,
        idle_power_watts: float | None = None,
    ) -> list[WindowState]:
        """One state for each window of the frame, in order.

        `idle_power_watts` is what was learned of this GPU elsewhere; by default it is learned
        from the frame.
        """
        around = surroundings or Surroundings()
        jobs = jobs or Jobs()
        starvation = StarvationJudge(gpu, around, jobs.processor_share, self._thresholds)
        view = GpuView(gpu, starvation, self._thresholds, idle_power_watts)
        return _walk(view, jobs.kinds or [None] * len(gpu))


def _walk(view: GpuView, kinds: Sequence[Kind | None]) -> list[WindowState]:
    """All windows once: what is plainly busy is told at once, the rest is looked at closely."""
    t, near_idle = view.thresholds, view.near_idle
    idle_at, blip = t.idle_utilization_ratio, t.blip_zero_ratio
    lost_at, throttled_at, stuck_at = t.lost_ratio, t.throttled_ratio, t.stuck_utilization_ratio
    sm_at, zero_at, coverage = t.pcie_sm_active_ratio, t.zero_activity_ratio, t.coverage_ratio
    restless, steady_at = view.starvation.restless, 1.0 - lost_at
    looked_at = view.starvation.loaders.looked_at
    errors = _errors(view.frame)
    plain: dict[tuple[int, bool, bool, bool, bool, bool], WindowState] = {}
    candidates = Candidates()
    states: list[WindowState] = []
    columns = zip(*(view.column(name) for name in _WALKED), strict=True)
    for i, (seconds, kind, row) in enumerate(zip(view.frame.seconds, kinds, columns, strict=True)):
        (covered, utilization, top, zero, busy, sm, sm_top, power, power_top) = row[:9]
        (memory, memory_low, memory_top, processes, gap, lost, hot, braked) = row[9:]
        maxima = top is not None or (utilization is None and sm_top is not None)
        if top is None:
            top = utilization
        if sm_top is None:
            sm_top = sm
        unseen = (top is None and sm_top is None) or (
            covered is not None and covered < coverage * seconds
        )
        quiet = (
            top is None
            or top <= idle_at
            or (
                zero is not None
                and zero >= blip
                and (busy == 0.0 or (processes == 0 and view.is_empty(memory_top)))
            )
        ) and (sm_top is None or sm_top <= idle_at)
        if (
            not quiet
            and not unseen
            and (lost is None or lost < lost_at)
            and (i not in restless or utilization is None or utilization > steady_at)
            and (sm is None or (sm >= sm_at and sm_top is not None and sm_top > zero_at))
            and (
                utilization is None
                or utilization < stuck_at
                or near_idle is None
                or power is None
                or power > near_idle
            )
            and (hot is None or hot < throttled_at)
            and (braked is None or braked < throttled_at)
        ):
            level = int(100.0 * (top if top is not None else sm_top or 0.0))
            gaps = (
                utilization is not None
                and utilization < steady_at
                and (lost is None or (kind in TRAINS and i not in looked_at))
            )
            key = (level, top is None, sm_top is None, power is None, maxima, gaps)
            state = plain.get(key)
            if state is None:
                state = plain[key] = busy_state(view, top, sm_top, power is not None, maxima, gaps)
            states.append(state)
            continue
        cells = Cells(
            i=i,
            seconds=seconds,
            covered=covered,
            utilization=utilization,
            top=top,
            zero=zero,
            busy=busy,
            sm=sm,
            sm_top=sm_top,
            power=power,
            power_top=power_top,
            memory=memory if memory_low is None else memory_low,
            memory_top=memory if memory_top is None else memory_top,
            processes=processes,
            gap=gap,
            lost=lost,
            hot=hot,
            braked=braked,
            kind=kind,
            maxima=maxima,
        )
        if unseen:
            states.append(_unseen(view, cells, errors.get(i)))
        elif quiet:
            states.append(idle_state(view, cells, candidates))
        else:
            states.append(active_state(view, cells, candidates))
    candidates.settle(
        view.frame,
        states,
        {
            "stuck": t.stuck_seconds,
            "orphan": t.orphan_seconds,
            "starved": t.unknown_kind_seconds,
        },
    )
    return states


def _errors(frame: Frame) -> dict[int, str]:
    return {i: texts["error"] for i, texts in enumerate(frame.texts) if "error" in texts}


def _unseen(view: GpuView, cells: Cells, error: str | None) -> WindowState:
    """No activity was read, or in too little of the window."""
    if error is not None:
        return view.keep(State.UNKNOWN, 0.0, f"the GPU answered an error: {error}")
    if cells.top is not None or cells.sm_top is not None:
        return view.keep(State.UNKNOWN, 0.0, "too little of the window was sampled")
    if cells.power is not None and view.working is not None and cells.power >= view.working:
        line = f"power_watts {cells.power:.0f}: no idle card draws that much"
        return view.keep(State.BUSY, 0.5, line)
    return view.keep(State.UNKNOWN, 0.0, "no activity was read")
