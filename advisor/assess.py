"""From history to the answer for each server."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from advisor.assessment import Assessment, Observations, Period
from advisor.check import check, declared_work
from advisor.commands.reading import Reading
from advisor.demand import job_demands
from advisor.fleet import FLEET_HOSTS, assess_fleet
from advisor.hardware_change import HardwareChange, last_change
from advisor.history import History
from advisor.hours import gpu_hours, owner_hours
from advisor.labels import NO_LABELS, Labels
from advisor.money import Payback, payback, with_savings
from advisor.observe import observe
from advisor.phase import Phase, Segment
from advisor.pooling import pool_need
from advisor.prices import Prices
from advisor.prices import load as load_prices
from advisor.rulebook import Rulebook
from advisor.sizing import judge
from advisor.sizing.case import QUIET, Case
from advisor.sizing.whatif import work
from telemetry.inventory import Inventory
from telemetry.states import State


def assess_all(reading: Reading) -> Iterator[Assessment]:
    """Every host of the history, by name; of a fleet, several at once, in processes.

    Of a fleet's observations only what a report shows is kept (`fleet.slim`).
    """
    hosts = reading.history.hosts()
    if len(hosts) >= FLEET_HOSTS:
        yield from assess_fleet(reading, hosts)
        return
    yield from assess_each(reading, hosts)


def assess_each(reading: Reading, hosts: Iterable[str]) -> Iterator[Assessment]:
    """The hosts one after the other, in this process."""
    rulebook = Rulebook.load(reading.settings.sizing)
    prices = load_prices(Path(reading.settings.prices)) if reading.settings.prices else None
    labels = reading.source.labels()
    for host in hosts:
        told, sized = reading.told(host), reading.sized(host)
        yield assess(reading.history, host, told, sized, rulebook, prices, labels)


def assess(
    history: History,
    host: str,
    told: Period | None,
    sized: Period | None,
    rulebook: Rulebook,
    prices: Prices | None = None,
    labels: Labels = NO_LABELS,
) -> Assessment:
    """The answer for one host; a host without windows gets what its inventory says."""
    if told is None or sized is None:
        inventory = history.inventory(host) or Inventory(host)
        nothing = Period(0, 0)
        findings = check(inventory, rulebook)
        return Assessment(host, inventory, nothing, nothing, (), (), (), findings)
    known = history.inventories(host, since=sized.since, until=sized.until)
    changed = last_change(known, rulebook.thresholds)
    observations = observe(history, host, sized, known[-1][1] if known else None, labels)
    judged = _unchanged(history, observations, changed, labels)
    case = case_of(judged, rulebook)
    return Assessment(
        host=host,
        inventory=observations.inventory,
        told=told,
        sized=judged.period,
        hours=gpu_hours(observations, told),
        owners=owner_hours(observations, told),
        segments=tuple(s for t in observations.gpus.values() for s in t.segments),
        findings=with_savings(judge(case), judged, prices),
        observations=observations,
        work=work(case),
        pool_need=pool_need(case),
        payback=_payback(case, judged, prices),
        changed=changed,
    )


def _payback(case: Case, observations: Observations, prices: Prices | None) -> Payback | None:
    if prices is None or case.too_short:
        return None
    busy = case.hours(State.BUSY, State.STARVED)
    known = case.hours(*State) - case.hours(State.UNKNOWN)
    return payback(observations, busy, known, prices)


def _unchanged(
    history: History, observations: Observations, changed: HardwareChange | None, labels: Labels
) -> Observations:
    """What was seen since the hardware last changed, or a card was taken out."""
    installed = {gpu.uuid for gpu in observations.inventory.gpus}
    period = observations.period
    taken = max(
        (
            timeline.frame.start[-1] + timeline.frame.seconds[-1]
            for uuid, timeline in observations.gpus.items()
            if installed and uuid.split("/")[0] not in installed and timeline.frame.start
        ),
        default=period.since,
    )
    since = taken if changed is None else max(taken, math.ceil(changed.time))
    if not period.since < since < period.until:
        return observations
    rest = Period(since, period.until)
    return observe(history, observations.host, rest, observations.inventory, labels)


def case_of(observations: Observations, rulebook: Rulebook) -> Case:
    """What sizing looks at: the phases by working hours, and what is known of the models."""
    segments = [s for t in observations.gpus.values() for s in t.segments]
    declared = declared_work(observations.inventory)
    return Case(
        observations.inventory,
        rulebook.profiles,
        rulebook.thresholds,
        observations=observations,
        phases=_shares(segments),
        demands=tuple(job_demands(observations)),
        parameters=declared.parameters
        + tuple(s.parameters for s in segments if s.parameters is not None),
        precisions=declared.precisions
        | frozenset(s.precision for s in segments if s.precision is not None),
    )


def _shares(segments: list[Segment]) -> dict[Phase, float]:
    seconds: dict[Phase, float] = defaultdict(float)
    for segment in segments:
        if segment.phase not in QUIET:
            seconds[segment.phase] += segment.end - segment.start
    total = sum(seconds.values())
    return {phase: value / total for phase, value in seconds.items()} if total else {}
