"""Storage: where the data lie, and whether GPUs were seen to wait for them."""

from __future__ import annotations

from dataclasses import replace

from advisor.finding import Basis, Dimension, Evidence, Finding, Verdict
from advisor.message import Amount, Message, say
from advisor.sizing import documented, series
from advisor.sizing.case import Case
from advisor.sizing.opinion import Opinion, settle
from advisor.sizing.quantities import data_devices
from telemetry.states import Cause, State

_DIMENSION = Dimension.STORAGE

_CAUSES: dict[Cause, tuple[Message, Message]] = {
    Cause.NETWORK_STORAGE: (
        say("network storage"),
        say(
            "Put the data that are in use on local NVMe, or link the storage at 25 Gb/s or more."
            " More or faster GPUs would wait just as long."
        ),
    ),
    Cause.LOCAL_STORAGE: (
        say("local storage"),
        say("Move the data in use to faster local NVMe. More or faster GPUs would wait too."),
    ),
    Cause.FUSE_OR_OBJECT_STORAGE: (
        say("a FUSE or object-storage mount"),
        say("Copy the data to local disk first, or stream large shards with a loader made for it."),
    ),
}


_SHARDS = say(
    "Pack the small files into large shards that are read in sequence, or copy them to RAM or NVMe"
    " first: the disk gives few bytes for many reads."
)


def judge(case: Case) -> Finding:
    """Under where the job lost time to storage, or the data lie where the guides say not."""
    opinions = [_with_recommendation(o) for o in documented.opinions(case, _DIMENSION)]
    opinions += _slow_devices(case)
    if case.observations is not None and not case.too_short:
        opinions += _measured(case)
    return settle(
        case,
        _DIMENSION,
        opinions,
        otherwise=say(
            "nothing reads a data set here, or where the data lie is not known;"
            " name the data paths in the configuration's [server] section"
        ),
    )


def _measured(case: Case) -> list[Opinion]:
    limits = case.thresholds
    lost = {cause: case.lost_ratio(cause) or 0.0 for cause in _CAUSES}
    total = sum(lost.values())
    live = case.hours(State.BUSY, State.STARVED)
    if live <= 0 or not case.feeds_on_data:
        return []
    if total < limits.number("starvation", "tell"):
        if not any(_saw_host(case)):
            return []
        return [
            Opinion(
                Verdict.RIGHT,
                Basis.MEASURED,
                say(
                    "the jobs lost {lost} of their time to storage",
                    lost=Amount(total, "ratio"),
                ),
                limits.number("confidence", "right"),
                evidence=_evidence(case, total),
            )
        ]
    worst = max(lost, key=lambda cause: lost[cause])
    what, advice = _CAUSES[worst]
    small = _small_reads(case) if worst is Cause.LOCAL_STORAGE else ()
    if small:
        advice = _SHARDS
    under = total >= limits.number("starvation", "under")
    return [
        Opinion(
            Verdict.UNDER if under else Verdict.ADVICE,
            Basis.MEASURED,
            say(
                "the GPUs lost {lost} of their jobs' time waiting for {what}",
                lost=Amount(total, "ratio"),
                what=what,
            ),
            limits.number("confidence", "measured"),
            rules=("R54",) if small else (),
            evidence=(*_evidence(case, total), *small),
            recommendation=advice,
            cause=worst.value,
            lost_ratio=total,
        )
    ]


def _small_reads(case: Case) -> tuple[Evidence, ...]:
    """The devices with data that were read in small pieces, by bytes over requests.

    The kernel merges neighbouring reads before it counts them, so that small ones were scattered.
    """
    least = case.thresholds.number("storage", "small_read_bytes")
    frames = {frame.key[1]: frame for frame in case.frames("disk")}
    found = []
    for device in data_devices(case):
        columns = frames[device.name].columns if device.name in frames else {}
        read, requests = (columns.get(f"{w}_per_second", ()) for w in ("read_bytes", "reads"))
        pairs = [p for p in zip(read, requests, strict=False) if None not in p]
        count = sum(requests or 0.0 for _, requests in pairs)
        mean = sum(size or 0.0 for size, _ in pairs) / count if count else None
        if mean is not None and mean < least:
            found.append(Evidence("disk.read_bytes", "mean of a read", round(mean), least))
    return tuple(found)


def _slow_devices(case: Case) -> list[Opinion]:
    """Devices with data that give less than the guide's several GB/s, by the user's benchmark; for
    NVMe without one by its link, than which no drive is faster."""
    if not case.feeds_on_data:
        return []
    least = case.thresholds.number("storage", "link_bytes_per_second")
    return [*_benchmarked(case, least), *_narrow_links(case, least)]


def _benchmarked(case: Case, least: float) -> list[Opinion]:
    return [
        _slow(
            case,
            say(
                "your benchmark read {rate} from {device}; the guide reads several GB/s from it",
                device=device.name,
                rate=Amount(rate, "bytes/second"),
            ),
            Evidence("benchmark_bytes_per_second", "inventory", rate, least),
            say("Keep the data in use on a faster local NVMe drive."),
        )
        for device in data_devices(case)
        if (rate := device.benchmark_bytes_per_second) is not None and rate < least
    ]


def _narrow_links(case: Case, least: float) -> list[Opinion]:
    return [
        _slow(
            case,
            say(
                "{device} is linked at {rate}; the guide reads several GB/s from it",
                device=device.name,
                rate=Amount(rate, "bytes/second"),
            ),
            Evidence("link_bytes_per_second", "inventory", rate, least),
            say("Look at the drive's slot: its link is narrower than NVMe usually has."),
        )
        for device in data_devices(case)
        if device.kind == "nvme"
        and device.benchmark_bytes_per_second is None
        and (rate := device.link_bytes_per_second or least) < least
    ]


def _slow(case: Case, reason: Message, evidence: Evidence, advice: Message) -> Opinion:
    return Opinion(
        Verdict.ADVICE,
        Basis.DOCUMENTED,
        reason,
        case.thresholds.number("confidence", "advice"),
        rule="R33",
        precedence=1,
        evidence=(evidence,),
        recommendation=advice,
    )


def _speed_evidence(case: Case) -> tuple[Evidence, ...]:
    """The most that each device with data was read at, beside what it can give: by the user's
    benchmark, else its link's rate."""
    frames = {frame.key[1]: frame for frame in case.frames("disk")}
    shown = []
    for device in data_devices(case):
        frame, metric = frames.get(device.name), "disk.read_bytes_per_second"
        fields = ("read_bytes_per_second_max", "read_bytes_per_second")
        peak = None if frame is None else series.maximum(frame, *fields)
        if peak is None:
            continue
        measured, link = device.benchmark_bytes_per_second, device.link_bytes_per_second
        if measured is not None:
            shown.append(Evidence(metric, "maximum, of its benchmark", peak, measured))
        elif link is not None:
            shown.append(Evidence(metric, "maximum, of its link", peak, link))
    return tuple(shown)


def _saw_host(case: Case) -> list[bool]:
    host = case.frames("host")
    return [any(v is not None for v in c) for f in host for c in f.columns.values()]


def _evidence(case: Case, lost: float) -> tuple[Evidence, ...]:
    hours = case.hours(State.STARVED)
    return (
        Evidence(
            "gap_lost_ratio",
            "lost over the live jobs' time",
            round(lost, 4),
            case.thresholds.number("starvation", "under"),
        ),
        Evidence("starved", "GPU-hours", round(hours, 1)),
        *_speed_evidence(case),
    )


def _with_recommendation(opinion: Opinion) -> Opinion:
    if opinion.verdict is not Verdict.UNDER:
        return opinion
    return replace(
        opinion,
        recommendation=say("Keep the data sets and checkpoints in use on local NVMe."),
    )
