"""Demand against capacity, and starvation with its cause, where there is something to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.assessment import Observations, Work
from advisor.finding import Basis, Dimension, Verdict
from advisor.message import Message, say
from advisor.report import words
from advisor.report.report import Server
from advisor.report.section import ServerSection
from advisor.report.time_axis import Columns, reduced
from telemetry.states import Cause, State

_SEEN = 0.01
"""Starvation below this share of the GPU-hours is no picture."""
_SIZED = (Dimension.GPU_COUNT, Dimension.GPU_CLASS, Dimension.VRAM)


@dataclass(frozen=True, slots=True)
class Demand:
    """What the work took of the GPUs or of their memory, against what is there.

    A value a column of time, None where it was not seen: the highest 5-minute window in it and
    their mean, in cards or bytes. `enough` is what a smaller option that would do has.
    """

    title: Message
    columns: Columns
    highest: Sequence[float | None]
    usual: Sequence[float | None]
    capacity: float
    enough: float | None
    unit: str


@dataclass(frozen=True, slots=True)
class Starvation:
    """GPU-hours lost in each column of time, by cause, the greatest first."""

    columns: Columns
    lost: Mapping[Cause, Sequence[float]]
    totals: tuple[tuple[Message, float], ...]


@dataclass(frozen=True, slots=True)
class Charts:
    """The pictures of one server."""

    demands: tuple[Demand, ...]
    starvation: Starvation | None


def build(server: Server) -> Charts | None:
    """The pictures' data; no section where none would show anything."""
    assessment = server.assessment
    if assessment.observations is None or assessment.told.until <= assessment.told.since:
        return None
    columns = Columns.of(assessment.told)
    demands = tuple(_demands(server, columns, assessment.work)) if _sized(server) else ()
    starvation = _starvation(server, columns, assessment.observations)
    return Charts(demands, starvation) if demands or starvation is not None else None


def _sized(server: Server) -> bool:
    """Whether a finding on the GPUs asks for something, in earnest."""
    return any(
        f.dimension in _SIZED
        and f.verdict in (Verdict.OVER, Verdict.UNDER)
        and f.basis is not Basis.DOCUMENTED
        for f in server.findings
    )


def _demands(server: Server, columns: Columns, work: Sequence[Work]) -> list[Demand]:
    gpus = server.assessment.inventory.gpus
    enough = min(
        (o.count for f in server.findings for o in f.what_if if o.rule is None and o.fits),
        default=None,
    )
    found = []
    cards = [(w.start, w.cards) for w in work if w.cards is not None]
    if any(columns.place(start) is not None for start, _ in cards):
        found.append(
            _demand(say("GPUs that the work filled"), columns, cards, len(gpus), enough, "GPUs")
        )
    sizes = [gpu.memory_bytes for gpu in gpus if gpu.memory_bytes is not None]
    memory = [(w.start, w.memory_bytes) for w in work if w.memory_bytes is not None]
    if len(sizes) == len(gpus) and any(columns.place(start) is not None for start, _ in memory):
        room = None if enough is None else float(enough * min(sizes))
        title = say("GPU memory that the work needed")
        found.append(_demand(title, columns, memory, float(sum(sizes)), room, "bytes"))
    return found


def _demand(
    title: Message,
    columns: Columns,
    values: Sequence[tuple[int, float]],
    capacity: float,
    enough: float | None,
    unit: str,
) -> Demand:
    return Demand(
        title,
        columns,
        reduced(columns, values, max),
        reduced(columns, values, lambda part: sum(part) / len(part)),
        capacity,
        enough,
        unit,
    )


def _starvation(server: Server, columns: Columns, seen: Observations) -> Starvation | None:
    total = sum(server.states.values())
    if total <= 0 or server.states.get(State.STARVED, 0.0) < _SEEN * total:
        return None
    lost: dict[Cause, list[float]] = {}
    for timeline in seen.gpus.values():
        frame = timeline.frame
        for start, seconds, result in zip(frame.start, frame.seconds, timeline.states, strict=True):
            place = columns.place(start)
            if place is not None and result.state is State.STARVED:
                cause = result.cause or Cause.UNKNOWN
                column = lost.setdefault(cause, [0.0] * columns.count)
                column[place] += seconds / 3600 * (result.lost_ratio or 0.0)
    if not any(map(sum, lost.values())):
        return None
    ranked = dict(sorted(lost.items(), key=lambda pair: -sum(pair[1])))
    totals = tuple((words.CAUSES[cause], sum(hours)) for cause, hours in ranked.items())
    return Starvation(columns, ranked, totals)


SECTION = ServerSection("charts", 22, say("Demand, and what was waited for"), build)
