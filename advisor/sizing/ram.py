"""RAM: the documented ratio to VRAM, and whether the host was seen to be short of it."""

from __future__ import annotations

from dataclasses import replace

from advisor.finding import Basis, Dimension, Evidence, Finding, Verdict
from advisor.message import Amount, say
from advisor.sizing import documented, series
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion, settle
from telemetry.states import Cause, State

_DIMENSION = Dimension.RAM


def judge(case: Case) -> Finding:
    """Under where pressure or swapping was seen, or below the documented ratio."""
    opinions = documented.opinions(case, _DIMENSION)
    if case.observations is not None and not case.too_short:
        opinions += _measured(case)
    wanted = _wanted_bytes(case)
    opinions = [_with_recommendation(o, wanted) for o in opinions]
    return settle(
        case,
        _DIMENSION,
        opinions,
        otherwise=say("the size of the RAM or of the GPUs' memory is not known"),
    )


def _measured(case: Case) -> list[Opinion]:
    limits = case.thresholds
    total = case.inventory.memory_bytes
    host = series.only(case.frames("host"))
    if host is None or not total:
        return []
    peak = series.maximum(host, "memory_used_bytes_max", "memory_used_bytes")
    if peak is None:
        return []
    pressed = series.share_at_least(
        host, "pressure_memory_some_ratio", limits.number("ram", "pressure_mean")
    )
    swapping = series.share_at_least(
        host, "swap_in_bytes_per_second", limits.number("ram", "swap_in_bytes_per_second")
    )
    lost = case.lost_ratio(Cause.HOST_MEMORY)
    evidence = [Evidence("host.memory_used_bytes", "maximum", peak, float(total))]
    shares = (
        ("host.pressure_memory_some_ratio", pressed),
        ("host.swap_in_bytes_per_second", swapping),
    )
    for metric, share in shares:
        if share is not None:
            evidence.append(
                Evidence(
                    metric,
                    "share of windows above its limit",
                    round(share, 4),
                    limits.number("ram", "pressed_share"),
                )
            )
    short = [s for s in (pressed, swapping) if s is not None]
    if short and max(short) >= limits.number("ram", "pressed_share"):
        held = _held_by_limit(case, peak, total)
        if held is not None:
            return [_limited(case, held, max(short), peak, total, tuple(evidence))]
        return [
            Opinion(
                Verdict.UNDER,
                Basis.MEASURED,
                say(
                    "the host was short of memory in {share} of the windows"
                    " (swapping or memory pressure), with {peak} of {total} in use at the peak",
                    share=Amount(max(short), "ratio"),
                    peak=Amount(peak, "bytes"),
                    total=Amount(float(total), "bytes"),
                ),
                limits.number("confidence", "measured"),
                evidence=tuple(evidence),
                cause=Cause.HOST_MEMORY.value if lost else None,
                lost_ratio=lost or None,
            )
        ]
    if not short and peak / total < limits.number("headroom", "ram") and not case.hours(State.BUSY):
        return []
    if short and _roomy(case, peak, float(total)):
        return [
            Opinion(
                Verdict.OVER,
                Basis.MEASURED,
                say(
                    "the peak was {peak} of {total}, more than twice of which and of twice the"
                    " GPUs' memory is there",
                    peak=Amount(peak, "bytes"),
                    total=Amount(float(total), "bytes"),
                ),
                limits.number("confidence", "right"),
                evidence=tuple(evidence),
                recommendation=say("Half of the RAM would do for this work."),
            )
        ]
    return [
        Opinion(
            Verdict.RIGHT,
            Basis.MEASURED,
            say(
                "the peak was {peak} of {total}, without swapping or memory pressure",
                peak=Amount(peak, "bytes"),
                total=Amount(float(total), "bytes"),
            ),
            limits.number("confidence", "right"),
            evidence=tuple(evidence),
        )
    ]


def _held_by_limit(case: Case, peak: float, total: float) -> float | None:
    """The cgroup's limit under which a job ran, where the host itself had memory to spare.

    Pressure is counted for the host even where a limit alone makes it.
    """
    sizes = [
        float(size)
        for limits in case.inventory.job_limits
        for size in (limits.memory_max_bytes, limits.memory_high_bytes)
        if size is not None and size < total
    ]
    spare = peak / total < case.thresholds.number("headroom", "ram")
    return min(sizes) if sizes and spare else None


def _limited(
    case: Case,
    held: float,
    share: float,
    peak: float,
    total: float,
    evidence: tuple[Evidence, ...],
) -> Opinion:
    lost = case.lost_ratio(Cause.HOST_MEMORY)
    return Opinion(
        Verdict.ADVICE,
        Basis.MEASURED,
        say(
            "memory was short in {share} of the windows under a limit of {limit}, while the host"
            " used {peak} of {total} at its peak",
            share=Amount(share, "ratio"),
            limit=Amount(held, "bytes"),
            peak=Amount(peak, "bytes"),
            total=Amount(total, "bytes"),
        ),
        case.thresholds.number("confidence", "measured"),
        evidence=(*evidence, Evidence("job_limits", "smallest", held, total)),
        recommendation=say(
            "Raise the limit of the job's cgroup (MemoryMax=, --memory) before buying RAM."
        ),
        cause=Cause.HOST_MEMORY.value if lost else None,
        lost_ratio=lost or None,
    )


def _roomy(case: Case, peak: float, total: float) -> bool:
    """Whether half of the RAM holds the peak and the documented twice the VRAM.

    Not asked of training, which makes use of free RAM as page cache.
    """
    limits, vram = case.thresholds, case.total_vram_bytes
    if not case.only_serves or case.inventory.standby or vram is None:
        return False
    half = limits.number("ram", "roomy") * total
    return peak / limits.number("headroom", "ram") <= half and 2.0 * vram <= half


def _wanted_bytes(case: Case) -> float | None:
    vram = case.total_vram_bytes
    if vram is None:
        return None
    host = series.only(case.frames("host"))
    peak = series.maximum(host, "memory_used_bytes_max", "memory_used_bytes") if host else None
    return max(vram, (peak or 0.0) / case.thresholds.number("headroom", "ram"))


def _with_recommendation(opinion: Opinion, wanted: float | None) -> Opinion:
    if opinion.verdict is not Verdict.UNDER or wanted is None:
        return opinion
    return replace(
        opinion,
        recommendation=say(
            "Fit at least {wanted} of RAM; the guides advise one to two times the GPUs' memory.",
            wanted=Amount(wanted, "bytes"),
        ),
    )
