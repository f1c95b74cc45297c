"""GPU-hours by state, by cause and by owner; they add up to the period."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from advisor.assessment import GpuHours, GpuTimeline, Observations, OwnerHours, Period
from advisor.losses import loss_json, losses
from advisor.processes import NOBODY, UNKNOWN_OWNER, ProcessReader, owners
from telemetry.metrics import COVERED_SECONDS
from telemetry.states import Cause, State
from telemetry.store import OwnerDay

Owner = tuple[str, str]
"""Who, and what kind of owner that is."""
_DAY = 86_400


def gpu_hours(observations: Observations, told: Period) -> tuple[GpuHours, ...]:
    """Where the hours of each GPU went over a period within what was observed.

    A window counts whole under its state; time without a window is unknown, so that the states
    add up to the period. Causes and lost hours are those of starved windows.
    """
    return tuple(
        _hours(observations, uuid, timeline, told)
        for uuid, timeline in present(observations, told).items()
    )


def present(observations: Observations, told: Period) -> dict[str, GpuTimeline]:
    """The GPUs that the server had in a period: a card that was taken out before it has no hours
    in it, while one that is in the inventory and was never seen has unknown ones."""
    installed = {gpu.uuid for gpu in observations.inventory.gpus}
    return {
        uuid: timeline
        for uuid, timeline in observations.gpus.items()
        if uuid.split("/")[0] in installed or next(_parts(timeline, told), None) is not None
    }


def owner_hours(observations: Observations, told: Period) -> tuple[OwnerHours, ...]:
    """GPU-hours by owner, the largest first; they add up to those of all GPUs.

    A GPU that several owners hold at once is shared out evenly. Where single processes are no
    longer kept, a day is shared out by what each owner's were seen. Time of a GPU that is known to
    hold no process belongs to nobody, all other time without an owner to "unknown".
    """
    seconds_of: dict[Owner, dict[State, float]] = defaultdict(lambda: defaultdict(float))
    reader = ProcessReader()
    days = _days(observations.owner_days)
    for uuid, timeline in present(observations, told).items():
        processes = reader.by_window(timeline.frame, observations.frames.get("gpu_process", ()))
        counts = timeline.frame.columns.get("process_count")
        seen = 0
        merged: dict[int, dict[State, float]] = defaultdict(lambda: defaultdict(float))
        for i, seconds in _parts(timeline, told):
            seen += seconds
            state = timeline.states[i].state
            whose = owners(processes[i])
            if not whose and counts is not None and counts[i] == 0:
                whose = (NOBODY,)
            if not whose:
                merged[timeline.frame.start[i] // _DAY * _DAY][state] += seconds
            for owner in whose:
                seconds_of[owner][state] += seconds / len(whose)
        for day, states in merged.items():
            for owner, share in _shares(days.get((uuid, day), {}), sum(states.values())):
                for state, value in states.items():
                    seconds_of[owner][state] += value * share
        rest = told.until - told.since - seen
        if rest > 0:
            seconds_of[UNKNOWN_OWNER][State.UNKNOWN] += rest
    return _by_size(
        {
            owner: {state: value / 3600 for state, value in states.items()}
            for owner, states in seconds_of.items()
        }
    )


def _days(days: Iterable[OwnerDay]) -> dict[tuple[str, int], dict[Owner, float]]:
    """By GPU and day the seconds for which each owner's processes were seen."""
    found: dict[tuple[str, int], dict[Owner, float]] = defaultdict(lambda: defaultdict(float))
    for day in days:
        owner = day.texts.get("owner")
        whose = UNKNOWN_OWNER if owner is None else (owner, day.texts.get("owner_kind", "unknown"))
        found[day.gpu_uuid, day.day][whose] += day.seconds
    return found


def _shares(used: Mapping[Owner, float], seconds: float) -> Iterator[tuple[Owner, float]]:
    """The share of each owner in some seconds of a day; what nobody was seen to use is unknown."""
    whole = max(seconds, sum(used.values()))
    for owner, mine in used.items():
        yield owner, mine / whole
    rest = whole - sum(used.values())
    if rest > 0:
        yield UNKNOWN_OWNER, rest / whole


def gpu_hours_json(hours: GpuHours) -> dict[str, Any]:
    """The JSON object of `talla-advisor hours`."""
    return {
        "host": hours.host,
        "gpu_uuid": hours.gpu_uuid,
        "hours": {state.value: round(value, 4) for state, value in hours.hours.items()},
        "causes": {cause.value: round(value, 4) for cause, value in hours.causes.items()},
        "lost_hours": round(hours.lost_hours, 4),
        "coverage_ratio": round(hours.coverage_ratio, 4),
        "losses": [loss_json(loss) for loss in hours.losses],
    }


def owner_hours_json(hours: OwnerHours) -> dict[str, Any]:
    """The JSON object of `talla-advisor hours --by owner`."""
    return {
        "owner": hours.owner,
        "owner_kind": hours.owner_kind,
        "hours": {state.value: round(value, 4) for state, value in hours.hours.items()},
    }


def _hours(observations: Observations, uuid: str, timeline: GpuTimeline, told: Period) -> GpuHours:
    states: dict[State, float] = defaultdict(float)
    causes: dict[Cause, float] = defaultdict(float)
    covered_column = timeline.frame.columns.get(COVERED_SECONDS)
    lost = covered = 0.0
    seen = 0
    for i, seconds in _parts(timeline, told):
        state = timeline.states[i]
        seen += seconds
        states[state.state] += seconds
        if state.state is State.STARVED:
            causes[state.cause or Cause.UNKNOWN] += seconds
            lost += seconds * (state.lost_ratio or 0.0)
        value = float(seconds) if covered_column is None else covered_column[i] or 0.0
        covered += min(float(seconds), value)
    length = told.until - told.since
    if length > seen:
        states[State.UNKNOWN] += length - seen
    coverage = covered / length if length > 0 else 0.0
    return GpuHours(
        host=observations.host,
        gpu_uuid=uuid,
        hours={state: seconds / 3600 for state, seconds in _ordered(states).items()},
        causes={cause: seconds / 3600 for cause, seconds in causes.items()},
        lost_hours=lost / 3600,
        coverage_ratio=min(1.0, coverage),
        losses=losses(
            ((timeline.states[i], float(seconds)) for i, seconds in _parts(timeline, told)),
            observations.inventory,
        ),
    )


def _parts(timeline: GpuTimeline, told: Period) -> Iterator[tuple[int, int]]:
    """Each window with its seconds inside the period; no second is counted twice."""
    frame = timeline.frame
    end = told.since
    for i, start in enumerate(frame.start):
        until = min(start + frame.seconds[i], told.until)
        seconds = until - max(start, end)
        if seconds > 0:
            end = until
            yield i, seconds


def _ordered(states: dict[State, float]) -> dict[State, float]:
    return {state: states[state] for state in State if states.get(state, 0.0) > 0.0}


def merged(several: Iterable[tuple[OwnerHours, ...]]) -> tuple[OwnerHours, ...]:
    """The hours of owners over several hosts, the largest first."""
    hours: dict[tuple[str, str], dict[State, float]] = defaultdict(lambda: defaultdict(float))
    for owners_of_host in several:
        for owner in owners_of_host:
            for state, value in owner.hours.items():
                hours[owner.owner, owner.owner_kind][state] += value
    return _by_size(hours)


def _by_size(hours: dict[tuple[str, str], dict[State, float]]) -> tuple[OwnerHours, ...]:
    ordered = sorted(hours.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    return tuple(OwnerHours(owner, kind, _ordered(states)) for (owner, kind), states in ordered)
