"""Windows in which no kernel ran: free, held by somebody, or by nobody."""

from __future__ import annotations

from telemetry.gpu_view import SERVES, TRAINS, Cells, GpuView
from telemetry.runs import Candidates
from telemetry.state import Note, State, WindowState


def idle_state(view: GpuView, cells: Cells, candidates: Candidates) -> WindowState:
    """The state of a window without activity; `orphan_held` is a candidate until it has lasted."""
    t = view.thresholds
    idle = f"utilization_ratio max {cells.top or 0.0:.2f} <= {t.idle_utilization_ratio}"
    if (
        cells.power is not None
        and view.limit is not None
        and (cells.power >= t.idle_power_limit_ratio * view.limit)
    ):
        return view.keep(
            State.UNKNOWN, 0.95, f"{idle} against power_watts {cells.power:.0f}: they contradict"
        )
    confidence = 0.95 if cells.power is not None else 0.85
    if not cells.maxima and cells.sm_top is None:
        confidence = min(confidence, 0.7)
    processes = None if view.blind else cells.processes
    own = view.cell("process_memory_bytes", cells.i)
    if cells.memory is None and own is None:
        return _memory_unknown(view, confidence, processes, idle)
    if max(cells.memory or 0.0, own or 0.0) <= view.held_above:
        if processes is None:
            confidence = min(confidence, 0.85)
        return _moving(view, cells) or view.keep(State.IDLE_FREE, confidence, idle)
    memory = f"memory_used_bytes {_gib(cells.memory)} > {_gib(view.held_above)}"
    if processes == 0:
        orphan = view.keep(
            State.ORPHAN_HELD,
            min(confidence, 0.85),
            idle,
            memory,
            "process_count 0: nobody alive holds it",
        )
        candidates.add("orphan", cells.i, orphan)
        return view.keep(State.UNKNOWN, 0.0, idle, memory, "its process just ended")
    if processes is None:
        confidence = min(confidence, 0.6)
    return _held(view, cells, confidence, (idle, memory))


def _memory_unknown(
    view: GpuView, confidence: float, processes: float | None, idle: str
) -> WindowState:
    if processes is not None and processes >= 1:
        return view.keep(State.IDLE_HELD, min(confidence, 0.5), idle, "a process is alive on it")
    return view.keep(State.IDLE_FREE, min(confidence, 0.8 if processes == 0 else 0.5), idle)


def _held(view: GpuView, cells: Cells, confidence: float, lines: tuple[str, ...]) -> WindowState:
    t = view.thresholds
    if cells.kind in TRAINS:
        found = view.starvation.judge(cells.i, 1.0, quiet=True)
        if found is not None:
            evidence = ("nothing ran in the whole window", *found.evidence)
            return view.keep(
                State.STARVED,
                min(confidence, found.confidence),
                *evidence,
                cause=found.cause,
                lost=1.0,
                place=found.place,
            )
    growth = _growth(view, cells)
    if growth is not None:
        line = f"memory grew by {_gib(growth)}"
        return view.keep(State.IDLE_HELD, confidence, *lines, line, note=Note.LOADING)
    read = view.cell("job_read_bytes_per_second", cells.i)
    if read is not None and read >= t.loading_read_bytes_per_second:
        line = f"its process reads {read:.2g} B/s"
        return view.keep(State.IDLE_HELD, confidence, *lines, line, note=Note.LOADING)
    if cells.kind in SERVES:
        line = "an inference server that waits for requests"
        return view.keep(State.IDLE_HELD, confidence, *lines, line, note=Note.STANDBY)
    return _moving(view, cells) or view.keep(State.IDLE_HELD, confidence, *lines)


def _moving(view: GpuView, cells: Cells) -> WindowState | None:
    """Copies without kernels: bytes over PCIe are work too."""
    at_least = view.thresholds.idle_pcie_bytes_per_second
    for name, rate in view.pcie(cells.i):
        if rate >= at_least:
            line = f"{name} {rate:.2g} >= {at_least:.2g}, without a kernel"
            return view.keep(State.BUSY, 0.5, line)
    return None


def _growth(view: GpuView, cells: Cells) -> float | None:
    """By how much the memory grew over the window before, where that is plain."""
    i, frame = cells.i, view.frame
    if i == 0 or cells.memory_top is None:
        return None
    before = view.cell("memory_used_bytes_max", i - 1)
    if before is None or frame.start[i] > frame.start[i - 1] + 2 * frame.seconds[i - 1]:
        return None
    growth = cells.memory_top - before
    return growth if growth >= view.thresholds.growth_bytes else None


def _gib(value: float | None) -> str:
    return "unknown" if value is None else f"{value / 2**30:.1f} GiB"
