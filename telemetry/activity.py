"""Windows in which something ran: work, gaps that the host explains, or only a spin."""

from __future__ import annotations

from telemetry.gpu_view import SERVES, TRAINS, Cells, GpuView
from telemetry.runs import Candidates
from telemetry.state import Cause, Note, State, WindowState

# Bytes a second of one lane in one direction, after the line code (2.5, 5, 8, 16, 32 and 64 GT/s;
# 8b/10b, then 128b/130b, then FLIT: https://pcisig.com/specifications).
_LANE = {1: 250e6, 2: 500e6, 3: 984.6e6, 4: 1969.2e6, 5: 3938.5e6, 6: 7563.0e6}


def busy_state(
    view: GpuView, top: float | None, sm_top: float | None, power: bool, maxima: bool, gaps: bool
) -> WindowState:
    """Plainly busy. `gaps` says that there is room for gaps, or for shorter waits of a training,
    and that they were not counted.

    Utilisation alone says that a kernel was resident, not that it worked.
    """
    t = view.thresholds
    confidence = 0.95 if sm_top is not None else 0.9
    if not power:
        confidence = 0.7 if sm_top is not None and sm_top > t.stuck_sm_active_ratio else 0.5
    if not maxima:
        confidence = min(confidence, 0.7)
    if gaps:
        confidence = min(confidence, 0.6)
    at = t.idle_utilization_ratio
    if top is not None and (top > at or sm_top is None):
        line = f"utilization_ratio {'max' if maxima else 'mean'} {top:.2f} > {at}"
    else:
        line = f"sm_active_ratio max {sm_top:.2f} > {at}"
    return view.keep(State.BUSY, confidence, line)


def active_state(view: GpuView, cells: Cells, candidates: Candidates) -> WindowState:
    """The state of a window with activity."""
    if _spins(view, cells):
        return _spinning(view, cells, candidates)
    contradiction = _contradiction(view, cells)
    if contradiction is not None:
        return view.keep(State.UNKNOWN, 0.95, contradiction)
    uncounted = cells.lost is None or (
        cells.kind in TRAINS and cells.i not in view.starvation.loaders.looked_at
    )
    gaps = uncounted and (cells.utilization or 0.0) < 1.0 - view.thresholds.lost_ratio
    plain = busy_state(view, cells.top, cells.sm_top, cells.power is not None, cells.maxima, gaps)
    if cells.gap and cells.lost is not None and cells.lost >= view.thresholds.lost_ratio:
        starved = _gaps(view, cells, cells.gap, cells.lost, plain, candidates)
        if starved is not None:
            return starved
    return _short_waits(view, cells) or _limited(view, cells, plain) or plain


def _short_waits(view: GpuView, cells: Cells) -> WindowState | None:
    """A named training that waits in every second, and never for as long as one: seconds of 60 %
    are no gaps. Told where its loaders never rest."""
    t = view.thresholds
    if cells.kind not in TRAINS or cells.gap is None or cells.utilization is None:
        return None
    lost = 1.0 - cells.utilization
    found = view.starvation.judge_short(cells.i) if lost >= t.lost_ratio else None
    if found is None:
        return None
    return view.keep(
        State.STARVED,
        found.confidence,
        f"utilization_ratio {cells.utilization:.2f}: {lost:.2f} is lost, {t.lost_ratio} or more",
        *found.evidence,
        cause=found.cause,
        lost=round(lost, 3),
        place=found.place,
    )


def _contradiction(view: GpuView, cells: Cells) -> str | None:
    t = view.thresholds
    if cells.sm_top is None or cells.sm_top > t.zero_activity_ratio:
        return None
    if cells.utilization is None or cells.utilization < t.busy_utilization_ratio:
        return None
    if cells.power is None or view.working is None or cells.power < view.working:
        return None
    return (
        f"sm_active_ratio max {cells.sm_top:.3f} against utilization_ratio"
        f" {cells.utilization:.2f} and power_watts {cells.power:.0f}: they contradict each other"
    )


def _limited(view: GpuView, cells: Cells, plain: WindowState) -> WindowState | None:
    """Busy, and held back by heat, a power brake or the PCIe link."""
    t = view.thresholds
    slowed = max(cells.hot or 0.0, cells.braked or 0.0)
    if slowed >= t.throttled_ratio:
        which = "thermal" if slowed == cells.hot else "power"
        line = f"throttle_{which}_ratio {slowed:.2f} >= {t.throttled_ratio}"
        return view.keep(
            State.BUSY,
            plain.confidence,
            *plain.evidence,
            line,
            cause=Cause.THROTTLED,
            lost=round(slowed, 2),
        )
    return _exchanging(view, cells, plain) or _link_bound(view, cells, plain)


def _exchanging(view: GpuView, cells: Cells, plain: WindowState) -> WindowState | None:
    """Kernels all the time, little computed, and a whole NVLink's worth of traffic: a training
    that mostly exchanges. Ranks of an engine do so while they decode, and are well."""
    t = view.thresholds
    if cells.kind not in TRAINS or cells.sm is None or cells.sm >= t.stuck_sm_active_ratio:
        return None
    if cells.utilization is None or cells.utilization < t.stuck_utilization_ratio:
        return None
    for name in ("nvlink_rx_bytes_per_second", "nvlink_tx_bytes_per_second"):
        rate = view.cell(name, cells.i)
        if rate is not None and rate >= t.exchange_bytes_per_second:
            line = f"{name} {rate:.2g} at sm_active_ratio {cells.sm:.2f}"
            evidence = (*plain.evidence, line)
            return view.keep(
                State.BUSY, min(plain.confidence, 0.7), *evidence, cause=Cause.COMMUNICATION
            )
    return None


def _link_bound(view: GpuView, cells: Cells, plain: WindowState) -> WindowState | None:
    t = view.thresholds
    generation = view.cell("pcie_link_generation", cells.i)
    width = view.cell("pcie_link_width", cells.i)
    if generation is None or width is None or cells.sm is None:
        return None
    if cells.sm >= t.pcie_sm_active_ratio:
        return None
    ceiling = _LANE.get(int(generation), 0.0) * width * t.pcie_link_ratio
    for name, rate in view.pcie(cells.i):
        if 0.0 < ceiling <= rate:
            link = f"{t.pcie_link_ratio} of the link (generation {generation:.0f} x{width:.0f})"
            line = f"{name} {rate:.2g} >= {link}"
            return view.keep(State.BUSY, plain.confidence, *plain.evidence, line, cause=Cause.PCIE)
    return None


def _spins(view: GpuView, cells: Cells) -> bool:
    """Busy by utilisation at about idle power, with nothing computed as far as was read."""
    t = view.thresholds
    if cells.utilization is None or cells.utilization < t.stuck_utilization_ratio:
        return False
    power = cells.power if cells.power_top is None else cells.power_top
    if power is None or view.near_idle is None or power > view.near_idle:
        return False
    if cells.sm is not None and cells.sm > t.stuck_sm_active_ratio:
        return False
    tensor = view.cell("tensor_active_ratio_max", cells.i)
    return tensor is None or tensor <= t.stuck_tensor_active_ratio


def _spinning(view: GpuView, cells: Cells, candidates: Candidates) -> WindowState:
    t = view.thresholds
    what = f"utilization_ratio {cells.utilization:.2f} at power_watts {cells.power or 0.0:.0f}"
    rates = view.pcie(cells.i)
    if not rates:
        line = f"{what}, as idle; PCIe traffic, which would tell, is unknown"
        return view.keep(State.BUSY, 0.5, line)
    fastest = max(rate for _, rate in rates)
    peaks = [rate for _, rate in view.pcie(cells.i, "_max")]
    if fastest > t.stuck_pcie_bytes_per_second or max(peaks, default=0.0) > (
        t.idle_pcie_bytes_per_second
    ):
        return view.keep(State.BUSY, 0.6, f"{what}, and PCIe moves up to {fastest:.2g} B/s")
    learned = "" if view.idle_power is None else f" (idle {view.idle_power:.0f})"
    lines = (
        f"{what} <= {view.near_idle or 0.0:.0f}{learned}",
        f"PCIe {fastest:.2g} B/s <= {t.stuck_pcie_bytes_per_second:.2g}",
    )
    if cells.kind in SERVES:
        # Ranks of an engine that wait for the next request may spin in a collective.
        return view.keep(State.IDLE_HELD, 0.6, *lines, note=Note.STANDBY)
    confidence = 0.6 if view.idle_power is None else 0.85
    if cells.sm is None:
        confidence = min(confidence, 0.75)
    candidates.add("stuck", cells.i, view.keep(State.STUCK, confidence, *lines))
    return view.keep(State.BUSY, 0.5, f"{what}, as idle, but not for long")


def _gaps(
    view: GpuView,
    cells: Cells,
    gap: float,
    lost: float,
    plain: WindowState,
    candidates: Candidates,
) -> WindowState | None:
    """Starved where the host explains the gaps; None where gaps are nobody's fault."""
    t = view.thresholds
    if cells.kind is not None and cells.kind not in TRAINS:
        return None  # an engine's gaps are requests that did not come
    if cells.processes == 0 and not view.blind:
        return None
    found = view.starvation.judge(cells.i, gap)
    if found is None:
        if cells.kind is None:
            return view.keep(State.BUSY, min(plain.confidence, 0.5), *plain.evidence)
        line = f"gap_lost_ratio {lost:.2f}, and no two signs of the host explain it"
        hint = view.starvation.loaders.hint(cells.i)
        return view.keep(
            State.BUSY,
            min(plain.confidence, 0.6),
            *plain.evidence,
            line,
            *((hint,) if hint else ()),
            cause=Cause.UNKNOWN,
            lost=round(lost, 2),
        )
    if found.cause is Cause.COMMUNICATION:
        if cells.kind is None:
            return None
        return view.keep(
            State.BUSY,
            min(plain.confidence, found.confidence),
            *plain.evidence,
            *found.evidence,
            cause=found.cause,
            lost=round(lost, 2),
            place=found.place,
        )
    starved = WindowState(
        State.STARVED,
        round(found.confidence * (1.0 if cells.kind else 0.75), 3),
        found.cause,
        round(lost, 3),
        (f"gap_lost_ratio {lost:.2f} >= {t.lost_ratio}", *found.evidence),
        view.unused,
        place=found.place,
    )
    if cells.kind is not None:
        return starved
    if cells.busy is not None and cells.busy >= t.unknown_kind_busy_ratio:
        candidates.add("starved", cells.i, starved)
    return view.keep(State.BUSY, 0.5, *plain.evidence, "gaps in what nobody named as training")
