"""Rows become slices of time: what each GPU's row says over [time, time + seconds).

A row covers until the next one of its GPU. Where that is more than three usual steps away there
is a gap, and the row covers one usual step.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import pairwise
from statistics import median_low

from advisor.importers.reader import SECONDS
from advisor.importers.recording import Recording, Track
from advisor.importers.windows import share_of
from telemetry.metrics import FAMILIES
from telemetry.window import Key, Sample

GAP_STEPS = 3.0
"""A row is followed by a gap where the next is more than this many usual steps later (design)."""

_TAGS = {f.measurement: f.tags for f in FAMILIES}
_READING_SECONDS = 5.0  # one reading of all GPUs takes no longer
_UNTOLD = "imported"
"""The device, mount or port of a log that gives its figures but not its name."""


@dataclass(frozen=True, slots=True)
class Span:
    """Row `row` of a track covers [start, end)."""

    start: float
    end: float
    row: int


def usual_step(tracks: Sequence[Track], told: float | None) -> float:
    """The usual time between two rows of a GPU in seconds: what was told, else the median."""
    if told is not None:
        return told
    medians: list[float] = []
    for track in tracks:
        times = sorted(set(track.times))
        steps = [b - a for a, b in pairwise(times)]
        if steps:
            medians.append(median_low(steps))  # of two, the shorter: a gap is not filled
    if medians:
        return median_low(medians)
    lengths = [v for t in tracks if SECONDS in t.values for v in t.values[SECONDS].present()]
    return max(lengths, default=1.0)


def _spans(track: Track, starts: array[float], step: float) -> Iterator[Span]:
    """What each row covers, in order; `starts` are the times of the rows."""
    order = _order(starts)
    seconds = track.values.get(SECONDS)
    i = 0
    while i < len(order):
        start = starts[order[i]]
        k = 1
        while i + k < len(order) and starts[order[i + k]] == start:
            k += 1
        width = step
        last = i + k == len(order)
        if not last:
            until_next = starts[order[i + k]] - start
            width = until_next if until_next <= GAP_STEPS * step else step
        told = seconds.get(order[i]) if seconds is not None else None
        if told:
            width = told if last else min(told, starts[order[i + k]] - start)
        # Rows of one second that carry the same time share it.
        for n in range(k):
            yield Span(start + width * n / k, start + width * (n + 1) / k, order[i + n])
        i += k


def _order(starts: array[float]) -> Sequence[int]:
    if all(a <= b for a, b in pairwise(starts)):
        return range(len(starts))
    return sorted(range(len(starts)), key=starts.__getitem__)


def slices(
    recording: Recording, step: float, processes: Callable[[str, str], dict[Key, dict[str, str]]]
) -> Iterator[Sample]:
    """The recording as samples without overlap, in order of time.

    The rows of a sample hold fields (means and other statistics), and the seconds it stands for
    are those it covers. `processes` makes the process rows of a GPU from its command lines.
    """
    tracks = list(recording.tracks.values())
    aligned = _aligned(tracks, step)
    coming = [_spans(t, s, step) for t, s in zip(tracks, aligned, strict=True)]
    ahead: dict[int, Span] = {n: s for n, i in enumerate(coming) if (s := next(i, None))}
    active: dict[int, tuple[Span, _Rows]] = {}
    while ahead or active:
        time = min((*(s.start for s in ahead.values()), *(s.end for s, _ in active.values())))
        for number in [n for n, (s, _) in active.items() if s.end <= time]:
            del active[number]
        for number in [n for n, s in ahead.items() if s.start <= time]:
            span = ahead.pop(number)
            active[number] = span, _Rows.of(recording, tracks[number], span.row, processes)
            if following := next(coming[number], None):
                ahead[number] = following
        if active:
            edges = (*(s.start for s in ahead.values()), *(s.end for s, _ in active.values()))
            yield _sample(time, min(edges) - time, active)


def _aligned(tracks: Sequence[Track], step: float) -> list[array[float]]:
    """The times of all rows, with those of one reading of all GPUs made equal."""
    aligned = [array("d", track.times) for track in tracks]
    if len(tracks) == 1 or any(SECONDS in track.values for track in tracks):
        return aligned
    reach = min(step / 2, _READING_SECONDS)
    begin = float("-inf")
    seen: set[int] = set()
    rows = merge(*(_timed(number, track.times) for number, track in enumerate(tracks)))
    for time, number, row in rows:
        if time - begin >= reach or (number in seen and time > begin):
            begin, seen = time, set()
        aligned[number][row] = begin
        seen.add(number)
    return aligned


def _timed(number: int, times: array[float]) -> Iterator[tuple[float, int, int]]:
    return ((times[row], number, row) for row in _order(times))


@dataclass(frozen=True, slots=True)
class _Rows:
    """One row of a log as rows of subjects."""

    values: dict[Key, dict[str, float]]
    texts: dict[Key, dict[str, str]]

    @classmethod
    def of(
        cls,
        recording: Recording,
        track: Track,
        row: int,
        processes: Callable[[str, str], dict[Key, dict[str, str]]],
    ) -> _Rows:
        numbers, words = track.row(row)
        values: dict[Key, dict[str, float]] = {}
        texts: dict[Key, dict[str, str]] = {}
        keys: dict[str, Key | None] = {
            m: cls._key(m, track, words) for m, _ in (*numbers, *words) if m
        }
        if track.uuid is not None:
            facts = recording.facts.get(track.uuid)
            if facts is not None and facts.model is not None:
                texts["gpu", track.uuid] = {"gpu_model": facts.model}
        engine = recording.engines.get(track.uuid or "")
        if engine is not None and "engine" in keys:
            key = keys["engine"] = ("engine", f"{_UNTOLD}-{engine[0]}")
            texts[key] = {"gpu_uuids": ",".join(engine)}
        for (measurement, name), number in numbers.items():
            if measurement and (subject := keys[measurement]) is not None:
                values.setdefault(subject, {})[name] = number
        for (measurement, name), word in words.items():
            if measurement == "gpu_process":
                if track.uuid is not None:
                    texts.update(processes(track.uuid, word))
            elif (subject := keys[measurement]) is not None and name not in _TAGS[measurement]:
                texts.setdefault(subject, {})[name] = word
        return cls(values, texts)

    @staticmethod
    def _key(measurement: str, track: Track, words: dict[tuple[str, str], str]) -> Key | None:
        if measurement == "gpu":
            return None if track.uuid is None else ("gpu", track.uuid)
        return (measurement, *(words.get((measurement, t), _UNTOLD) for t in _TAGS[measurement]))


def _sample(time: float, seconds: float, active: dict[int, tuple[Span, _Rows]]) -> Sample:
    sample = Sample(time, {}, {}, seconds)
    for _, (span, rows) in sorted(active.items()):
        share = seconds / (span.end - span.start)
        for key, values in rows.values.items():
            sample.rows.setdefault(key, {}).update(share_of(key, values, share))
        for key, texts in rows.texts.items():
            sample.texts.setdefault(key, {}).update(texts)
    return sample
