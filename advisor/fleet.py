"""Many servers: assessed in several processes, each with its own connections.

What comes back of one server is small: a fleet of hundreds must fit in memory.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.assessment import Assessment, GpuTimeline
from telemetry.window import Frame

if TYPE_CHECKING:
    from advisor.commands.reading import Reading, Source
    from advisor.history import History
    from advisor.labels import Labels
    from advisor.prices import Prices
    from advisor.rulebook import Rulebook
    from advisor.sizing_config import SizingSettings

FLEET_HOSTS = 6
"""From so many servers on it pays to start processes."""

_MOST_PROCESSES = 8
_SHOWN = ("covered_seconds", "utilization_ratio", "memory_used_bytes_max", "power_watts")
"""The columns of GPUs that reports show."""


def assess_fleet(reading: Reading, hosts: Sequence[str]) -> Iterator[Assessment]:
    """The hosts' assessments in their order, with progress on a terminal."""
    settings = reading.settings
    asked = _Asked(
        reading.source,
        reading.since,
        reading.look_back,
        reading.until,
        Path(settings.prices) if settings.prices else None,
        settings.sizing,
    )
    workers = min(_MOST_PROCESSES, len(os.sched_getaffinity(0)), len(hosts))
    context = multiprocessing.get_context("spawn")  # open databases do not survive a fork
    with ProcessPoolExecutor(workers, context, _begin, (asked,)) as pool:
        for number, assessment in enumerate(pool.map(_assess, hosts), 1):
            _progress(number, len(hosts))
            yield assessment


def slim(assessment: Assessment) -> Assessment:
    """The assessment without what only judging needs."""
    seen = assessment.observations
    if seen is None:
        return assessment
    starts: dict[tuple[int, ...], list[int]] = {}
    states = {state: state for t in seen.gpus.values() for state in t.states}
    gpus = {}
    for uuid, timeline in seen.gpus.items():
        frame = timeline.frame
        columns = {n: c for n, c in frame.columns.items() if n in _SHOWN}
        start = starts.setdefault(tuple(frame.start), frame.start)
        gpus[uuid] = GpuTimeline(
            Frame(frame.key, start, frame.seconds, columns),
            [states[state] for state in timeline.states],
            timeline.segments,
        )
    return replace(assessment, observations=replace(seen, gpus=gpus, frames={}))


@dataclass(frozen=True, slots=True)
class _Asked:
    source: Source
    since: float
    look_back: float
    until: float | None
    prices: Path | None
    sizing: SizingSettings


@dataclass(slots=True)
class _Worker:
    """What a process holds open."""

    asked: _Asked
    history: History
    rulebook: Rulebook
    prices: Prices | None
    labels: Labels


_worker: _Worker | None = None


def _begin(asked: _Asked) -> None:
    global _worker  # noqa: PLW0603 - a process of the pool has no other place
    from advisor.prices import load as load_prices
    from advisor.rulebook import Rulebook

    # A server's windows are millions of cells without cycles: looking for some costs a fifth.
    gc.set_threshold(200_000, 50, 50)
    opened = ExitStack()
    history = opened.enter_context(asked.source.opened())
    multiprocessing.util.Finalize(None, opened.close, exitpriority=10)
    prices = None if asked.prices is None else load_prices(asked.prices)
    _worker = _Worker(asked, history, Rulebook.load(asked.sizing), prices, asked.source.labels())


def _assess(host: str) -> Assessment:
    from advisor.assess import assess
    from advisor.period import period

    assert _worker is not None
    history, asked = _worker.history, _worker.asked
    told = period(history, host, asked.since, asked.until)
    sized = period(history, host, asked.look_back, asked.until)
    return slim(
        assess(history, host, told, sized, _worker.rulebook, _worker.prices, _worker.labels)
    )


def _progress(number: int, count: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if number == count else ""
        sys.stderr.write(f"\r{number} of {count} servers{end}")
        sys.stderr.flush()


__all__ = ["FLEET_HOSTS", "assess_fleet", "slim"]
