"""What ran: the phases with their GPU-hours, the model, and what tells them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from advisor.message import Message, say
from advisor.phase import Phase, Segment
from advisor.report import words
from advisor.report.report import Server
from advisor.report.section import ServerSection

_EVIDENCE_SHOWN = 2


@dataclass(frozen=True, slots=True)
class Line:
    """One phase with one model. `evidence` is that of its longest segment."""

    phase: Message
    model: str | None
    parameters: str | None
    gpus: tuple[int, ...]
    hours: float
    confidence: float
    owners: tuple[str, ...]
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phases:
    """The lines, the longest first."""

    lines: tuple[Line, ...]


def build(server: Server) -> Phases | None:
    """The phases within the told period; no section where nothing ran."""
    told = server.assessment.told
    groups: dict[tuple[Phase, str | None], list[tuple[Segment, float]]] = {}
    for segment in server.assessment.segments:
        hours = (min(segment.end, told.until) - max(segment.start, told.since)) / 3600
        if hours > 0 and segment.phase is not Phase.IDLE:
            groups.setdefault((segment.phase, segment.model), []).append((segment, hours))
    lines = [_line(server, parts) for parts in groups.values()]
    lines.sort(key=lambda line: -line.hours)
    return Phases(tuple(lines)) if lines else None


def _line(server: Server, parts: list[tuple[Segment, float]]) -> Line:
    longest = max(parts, key=lambda part: part[1])[0]
    hours = sum(h for _, h in parts)
    parameters = longest.parameters
    return Line(
        words.PHASES[longest.phase],
        longest.model,
        None if parameters is None else _size(parameters),
        _indices(server, (s.gpu_uuid for s, _ in parts)),
        hours,
        sum(s.confidence * h for s, h in parts) / hours,
        tuple(sorted({s.owner for s, _ in parts if s.owner})),
        longest.evidence[:_EVIDENCE_SHOWN],
    )


def _size(parameters: float) -> str:
    """As models are named: 70B, 350M."""
    value, letter = (parameters / 1e9, "B") if parameters >= 1e9 else (parameters / 1e6, "M")
    return f"{value:.3g}{letter}"


def _indices(server: Server, uuids: Iterable[str]) -> tuple[int, ...]:
    known = {h.gpu_uuid: i for i, h in enumerate(server.assessment.hours)}
    places = {}
    for uuid in uuids:
        info = server.gpu(uuid)
        index = None if info is None else info.index
        places[uuid] = known.get(uuid, 0) if index is None else index
    return tuple(sorted(set(places.values())))


SECTION = ServerSection("phases", 40, say("What ran"), build)
