"""CPU: the documented cores a GPU, and whether data loading was seen to wait for them."""

from __future__ import annotations

from dataclasses import replace

from advisor.finding import Basis, Dimension, Evidence, Finding, Verdict
from advisor.message import Amount, Message, say
from advisor.sizing import documented, series
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion, settle
from telemetry.states import Cause

_DIMENSION = Dimension.CPU


def judge(case: Case) -> Finding:
    """Under where jobs lost time to CPU-bound loaders, or below the documented cores."""
    opinions = [
        replace(o, recommendation=say("Choose processors with at least 4 physical cores a GPU."))
        if o.verdict is Verdict.UNDER
        else o
        for o in documented.opinions(case, _DIMENSION)
    ]
    if case.observations is not None and not case.too_short:
        opinions += _measured(case)
    return settle(
        case, _DIMENSION, opinions, otherwise=say("the number of physical cores is not known")
    )


def _measured(case: Case) -> list[Opinion]:
    limits = case.thresholds
    lost = case.lost_ratio(Cause.CPU_DATALOADER)
    if lost is None or lost < limits.number("starvation", "tell"):
        return []
    host = series.only(case.frames("host"))
    busy = series.known(host, "cpu_busy_ratio") if host else []
    full = bool(busy) and series.percentile(busy, 0.95) >= limits.number("headroom", "busy")
    under = full and lost >= limits.number("starvation", "under")
    return [
        Opinion(
            Verdict.UNDER if under else Verdict.ADVICE,
            Basis.MEASURED,
            say(
                "the GPUs lost {lost} of their jobs' time to data loading on the processors",
                lost=Amount(lost, "ratio"),
            ),
            limits.number("confidence", "measured"),
            evidence=(
                Evidence(
                    "gap_lost_ratio",
                    "lost over the live jobs' time",
                    round(lost, 4),
                    limits.number("starvation", "under"),
                ),
                *(
                    (Evidence("host.cpu_busy_ratio", "P95 of 5-minute means", round(p95, 3)),)
                    if busy and (p95 := series.percentile(busy, 0.95)) is not None
                    else ()
                ),
            ),
            recommendation=_recommendation(case, full),
            cause=Cause.CPU_DATALOADER.value,
            lost_ratio=lost,
        )
    ]


def _recommendation(case: Case, full: bool) -> Message:
    if full:
        return say("Decode on the GPU or prepare the data beforehand; then more cores.")
    held = [
        float(limit)
        for limits in case.inventory.job_limits
        for limit in (limits.cpu_cores, limits.cpuset_threads)
        if limit is not None
    ]
    threads = case.inventory.cpu.threads if case.inventory.cpu else None
    if held and (threads is None or min(held) < threads):
        return say(
            "Give the job more of the cores that are idle here: its cgroup allows it {limit}"
            " (CPUQuota=, --cpus or --cpuset-cpus).",
            limit=Amount(min(held), "cores"),
        )
    return say("Raise the loader's number of workers: cores of this host are idle.")
