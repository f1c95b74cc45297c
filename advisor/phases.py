"""What each GPU was doing: segments in time, from the strongest evidence that there is.

In this order: what a person pinned, what the processes say of themselves, an inference engine's
own metrics, then telemetry, which tells the broad phases alone and only where they are clear.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.catalogue import find_gpu
from advisor.evidence import Label, Pins, engine_labels, process_label
from advisor.features import Features, features_of, together
from advisor.labels import NO_LABELS, Labels, PersonLabel
from advisor.phase import SERVING_PHASES, Phase, Segment
from advisor.phase_thresholds import PhaseThresholds
from advisor.processes import Process
from advisor.telemetry_phase import tell
from telemetry.inventory import Inventory
from telemetry.states import Note, State, WindowState
from telemetry.window import Frame
from telemetry.workload import Kind

_IDLE = frozenset({State.IDLE_FREE, State.IDLE_HELD, State.ORPHAN_HELD})
_IDLE_LABEL = Label(Phase.IDLE, 0.9, ("no kernel ran",))
_UNKNOWN_LABEL = Label(Phase.UNKNOWN, 0.0, ("nothing tells what ran",))


@dataclass(slots=True)
class _Gpu:
    """One GPU on its way to segments: the labels of each window, and its stretches untold."""

    frame: Frame
    states: Sequence[WindowState]
    labels: list[tuple[Label, ...]]
    stretches: list[tuple[list[int], list[int]]]
    features: list[Features]
    starts: list[int]


class PhaseTeller:
    """Takes the GPUs of one host, one after the other, and tells their segments together."""

    def __init__(
        self,
        inventory: Inventory,
        frames: Mapping[str, Sequence[Frame]],
        labels: Labels = NO_LABELS,
    ) -> None:
        self._inventory = inventory
        self._labels = labels
        self._engines = engine_labels(frames.get("engine", ()))
        self._pins = Pins(inventory)
        self._t = PhaseThresholds.load()
        self._gpus: dict[str, _Gpu] = {}

    def engines_of(self, gpu: Frame) -> list[Kind | None] | None:
        """For each window of a GPU the kind that an engine's metrics tell; None without engine."""
        labels = self._engines.get(gpu.key[1])
        if labels is None:
            return None
        return [Kind.LLM_INFERENCE if start in labels else None for start in gpu.start]

    def add(
        self,
        uuid: str,
        frame: Frame,
        states: Sequence[WindowState],
        processes: Sequence[tuple[Process, ...]],
    ) -> None:
        """One GPU with the state and the processes of each window."""
        engines = self._engines.get(uuid, {})
        known: dict[tuple[tuple[Process, ...], Label | None], tuple[Label, ...]] = {}
        labels: list[tuple[Label, ...]] = []
        for i, state in enumerate(states):
            here = processes[i], engines.get(frame.start[i])
            said = known.get(here)
            if said is None:
                said = known[here] = self._said(uuid, *here)
            if not here[0] and here[1] is None and state.state is State.UNKNOWN:
                said = ()  # a pin alone does not tell what an unseen GPU did
            person = self._labels.at(self._inventory.host, uuid, frame.start[i])
            if person is not None and state.state is not State.UNKNOWN:
                said = (_labelled(person, said),)
            labels.append(_at_work(state, said))
        gpu = _Gpu(frame, states, labels, [], [], [])
        gpu.stretches = self._stretches(gpu)
        limit = power_limit_watts(self._inventory, uuid, frame)
        gpu.features = [features_of(frame, w, active, limit) for w, active in gpu.stretches]
        gpu.starts = [f.start for f in gpu.features]
        self._gpus[uuid] = gpu

    def _said(
        self, uuid: str, processes: tuple[Process, ...], engine: Label | None
    ) -> tuple[Label, ...]:
        """What pins, processes or an engine say, the first of them that speaks."""
        told = (process_label(process) for process in processes)
        said = tuple(dict.fromkeys(label for label in told if label))
        if not said and engine is not None:
            said = (engine,)
        pinned = self._pins.label(uuid, processes, said)
        return said if pinned is None else (pinned,)

    def segments(self) -> dict[str, list[Segment]]:
        """The segments of every GPU in order of time, with the GPUs that each job uses."""
        work = [
            (gpu, windows, active, together([features, *self._alike_elsewhere(features)]))
            for gpu in self._gpus.values()
            for (windows, active), features in zip(gpu.stretches, gpu.features, strict=True)
        ]
        if work:
            answers = tell([features for *_, features in work], self._t, self._labels.models)
            for (gpu, windows, active, _), told in zip(work, answers, strict=True):
                if told is None:
                    continue
                label = self._pins.narrowed(Label(told.phase, told.confidence, told.evidence))
                for i in windows if told.waits_too else active:
                    gpu.labels[i] = (label,)
        merged = {uuid: self._merged(uuid, gpu) for uuid, gpu in self._gpus.items()}
        return _grouped(merged)

    # ---- Stretches of work that nothing but telemetry tells of ----

    def _stretches(self, gpu: _Gpu) -> list[tuple[list[int], list[int]]]:
        """Windows between the first and the last active one without a long pause or a hole.

        Waiting with the memory held belongs to a stretch however long it is.
        """
        frame = gpu.frame
        stretches: list[tuple[list[int], list[int]]] = []
        windows: list[int] = []
        active: list[int] = []
        last_end = free = 0
        for i, state in enumerate(gpu.states):
            works = at_work(state)
            holds = state.state is State.IDLE_HELD
            if gpu.labels[i] or frame.start[i] > last_end + self._t.bridge_seconds:
                windows, active, free = _close(stretches, windows, active)
            if not gpu.labels[i] and (works or (windows and holds)):
                windows.append(i)
                free = 0
                if works:
                    active.append(i)
            elif windows:
                windows.append(i)
                free += frame.seconds[i]
                if free > self._t.bridge_seconds:
                    windows, active, free = _close(stretches, windows, active)
            last_end = frame.start[i] + frame.seconds[i]
        _close(stretches, windows, active)
        return stretches

    def _alike_elsewhere(self, mine: Features) -> list[Features]:
        return [f for other in self._gpus.values() for f in self._alike(mine, other)]

    def _alike(self, mine: Features, other: _Gpu) -> list[Features]:
        """The other GPU's stretch that did the same at the same time, if there is one."""
        # Stretches of a GPU follow each other, so only neighbours in time can overlap.
        place = bisect_right(other.starts, mine.start)
        near = other.features[max(0, place - 1) : place + 1]
        return [f for f in near if f is not mine and self._same(mine, f)][:1]

    def _same(self, a: Features, b: Features) -> bool:
        overlap = min(a.end, b.end) - max(a.start, b.start)
        if overlap < self._t.alike_overlap * max(a.end - a.start, b.end - b.start):
            return False
        pairs = ((a.power_ratio, b.power_ratio), (a.utilization_ratio, b.utilization_ratio))
        return all(
            x is not None and y is not None and abs(x - y) <= self._t.alike_difference
            for x, y in pairs
        )

    # ---- Segments ----

    def _merged(self, uuid: str, gpu: _Gpu) -> list[Segment]:
        """Windows with the same label become one segment; short pauses are bridged."""
        frame, host = gpu.frame, self._inventory.host
        open_: dict[Label, list[int]] = {}
        spans: list[tuple[int, int, Label]] = []
        for i, labels in enumerate(gpu.labels):
            start, end = frame.start[i], frame.start[i] + frame.seconds[i]
            for label in labels:
                span = open_.get(label)
                if span is not None and start - span[1] <= self._t.bridge_seconds:
                    span[1] = end
                else:
                    if span is not None:
                        spans.append((span[0], span[1], label))
                    open_[label] = [start, end]
        spans += [(span[0], span[1], label) for label, span in open_.items()]
        spans += _rest(gpu, _union((s, e) for s, e, _ in spans))
        spans.sort(key=lambda span: span[:2])
        return [self._pins.described(label.segment(host, uuid, s, e)) for s, e, label in spans]


def _labelled(person: PersonLabel, said: tuple[Label, ...]) -> Label:
    """A person's word, with the model and the owner that the process tells."""
    base = said[0] if said else Label(person.phase, 1.0, ())
    evidence = (f"labelled by {person.made_by}", *base.evidence)
    return replace(base, phase=person.phase, confidence=1.0, evidence=evidence)


def at_work(state: WindowState) -> bool:
    """Whether something ran in a window."""
    return state.state not in _IDLE and state.state is not State.UNKNOWN


def power_limit_watts(inventory: Inventory, uuid: str, frame: Frame) -> float | None:
    """What the card reports, the inventory's, or the catalogue's for its name."""
    column = frame.columns.get("power_limit_watts", ())
    limit = next((value for value in reversed(column) if value is not None), None)
    info = next((gpu for gpu in inventory.gpus if gpu.uuid == uuid), None)
    if limit is None and info is not None:
        limit = info.power_limit_watts
    if limit is not None:
        return limit
    name = info.name if info is not None else None
    if name is None:
        name = next((t["gpu_model"] for t in reversed(frame.texts) if "gpu_model" in t), None)
    card = None if name is None else find_gpu(name, info.memory_bytes if info else None)
    return None if card is None else card.power_watts


def _union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The time that spans cover, in order and without overlap."""
    union: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(end, union[-1][1]))
        else:
            union.append((start, end))
    return union


def _rest(gpu: _Gpu, taken: list[tuple[int, int]]) -> list[tuple[int, int, Label]]:
    """Idle and unknown time that no work's segment covers."""
    frame = gpu.frame
    rest: list[tuple[int, int, Label]] = []
    place = 0
    for i, state in enumerate(gpu.states):
        start, end = frame.start[i], frame.start[i] + frame.seconds[i]
        while place < len(taken) and taken[place][1] <= start:
            place += 1
        if place < len(taken) and taken[place][0] <= start:
            continue
        label = _IDLE_LABEL if state.state in _IDLE else _UNKNOWN_LABEL
        if rest and rest[-1][2] is label and rest[-1][1] == start:
            rest[-1] = (rest[-1][0], end, label)
        else:
            rest.append((start, end, label))
    return rest


def _close(
    stretches: list[tuple[list[int], list[int]]], windows: list[int], active: list[int]
) -> tuple[list[int], list[int], int]:
    """Ends a stretch at its last active window."""
    if active:
        stretches.append(([i for i in windows if i <= active[-1]], active))
    return [], [], 0


def _at_work(state: WindowState, said: tuple[Label, ...]) -> tuple[Label, ...]:
    """Of what is said of a window, what holds while the GPU is in this state."""
    if state.state in {State.IDLE_FREE, State.ORPHAN_HELD}:
        return ()
    if state.state is State.IDLE_HELD and state.note is not Note.LOADING:
        return tuple(label for label in said if label.phase in SERVING_PHASES)
    return said


def _grouped(merged: dict[str, list[Segment]]) -> dict[str, list[Segment]]:
    """Gives each segment the GPUs that hold the same job at the same time."""
    everything = [segment for segments in merged.values() for segment in segments]
    jobs: dict[tuple[object, ...], list[Segment]] = {}
    for segment in everything:
        if segment.phase not in {Phase.IDLE, Phase.UNKNOWN}:
            jobs.setdefault(_job(segment), []).append(segment)

    def group(segment: Segment) -> Segment:
        if segment.gpus or segment.phase in {Phase.IDLE, Phase.UNKNOWN}:
            return segment
        length = segment.end - segment.start
        uuids = {
            other.gpu_uuid
            for other in jobs[_job(segment)]
            if 2 * (min(segment.end, other.end) - max(segment.start, other.start)) >= length
        }
        return replace(segment, gpus=tuple(u for u in merged if u in uuids))

    return {uuid: [group(segment) for segment in segments] for uuid, segments in merged.items()}


def _job(segment: Segment) -> tuple[object, ...]:
    return (
        segment.phase,
        segment.model,
        segment.owner,
        segment.owner_kind,
        segment.evidence if segment.owner is not None else None,
    )
