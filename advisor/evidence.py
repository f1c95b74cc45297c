"""What people, processes and engines say of a GPU's work, as labels of windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from advisor.catalogue import find_model
from advisor.phase import WITHIN, Phase, Segment
from advisor.processes import Process
from telemetry.inventory import Inventory, Workload
from telemetry.modelname import parameters_of, precision_in
from telemetry.window import Frame
from telemetry.workload import Kind

_PHASES = {phase.value: phase for phase in Phase}


@dataclass(frozen=True, slots=True)
class Label:
    """What a window is said to be. Equal labels of one GPU become one segment."""

    phase: Phase
    confidence: float
    evidence: tuple[str, ...]
    model: str | None = None
    model_source: str | None = None
    parameters: float | None = None
    precision: str | None = None
    owner: str | None = None
    owner_kind: str | None = None
    gpus: tuple[str, ...] = ()

    def segment(self, host: str, uuid: str, start: int, end: int) -> Segment:
        """The label over [start, end) on a GPU."""
        return Segment(
            host=host,
            gpu_uuid=uuid,
            start=start,
            end=end,
            phase=self.phase,
            confidence=round(self.confidence, 3),
            evidence=self.evidence,
            model=self.model,
            model_source=self.model_source,
            parameters=self.parameters,
            precision=self.precision,
            owner=self.owner,
            owner_kind=self.owner_kind,
            gpus=self.gpus,
        )


def process_label(process: Process) -> Label | None:
    """What a process says of itself; None where it says nothing."""
    if process.kind is None:
        return None
    confidence, lines = 0.95, [f"command: {(process.job or '')[:160]}"]
    if process.tool is not None:
        lines.append(f"signature: {process.tool}, {process.kind.value}")
    if process.tool == "script":
        confidence = 0.8  # a script's name is a promise, no more
    if process.kind is Kind.MIXED:
        phase, confidence = Phase.TRAINING_OR_FINETUNING, 0.5
        lines.append("mixed: reinforcement learning trains and generates")
    else:
        phase = _PHASES[process.kind.value]
    return Label(
        phase=phase,
        confidence=confidence,
        evidence=tuple(lines),
        model=process.model,
        model_source=process.model_source,
        parameters=_parameters(process.model, process.parameters),
        precision=process.precision,
        owner=process.owner,
        owner_kind=process.owner_kind,
    )


def engine_labels(engines: Iterable[Frame]) -> dict[str, dict[int, Label]]:
    """By GPU and start of window, what an engine's own endpoint tells."""
    found: dict[str, dict[int, Label]] = {}
    known: dict[tuple[str | None, ...], Label] = {}
    for frame in engines:
        for start, texts in zip(frame.start, frame.texts, strict=False):
            uuids = tuple(texts.get("gpu_uuids", "").replace(",", " ").split())
            key = (frame.key[1], texts.get("engine"), texts.get("model"), *uuids)
            label = known.get(key)
            if label is None:
                label = known[key] = _engine_label(
                    frame.key[1], texts.get("engine"), texts.get("model"), uuids
                )
            for uuid in uuids:
                found.setdefault(uuid, {}).setdefault(start, label)
    return found


def _engine_label(
    port: str, engine: str | None, model: str | None, uuids: tuple[str, ...]
) -> Label:
    return Label(
        phase=Phase.LLM_INFERENCE,
        confidence=0.9,
        evidence=(f"engine metrics: {engine or 'an inference engine'} on port {port}",),
        model=model,
        model_source=None if model is None else "engine",
        parameters=None if model is None else _parameters(model, parameters_of(model)),
        precision=None if model is None else precision_in(model),
        gpus=uuids,
    )


def _parameters(model: str | None, stated: float | None) -> float | None:
    """The catalogue's count, which knows experts and towers, before the name's round figure."""
    known = None if model is None else find_model(model)
    return stated if known is None else float(known.parameters)


_UNITS = {"unit", "service", "systemd_unit", "container"}
"""Kinds of owners that `unit` of a declared workload may name."""


class Pins:
    """What the configuration of a server declares of its work."""

    def __init__(self, inventory: Inventory) -> None:
        named = [*inventory.pinned_phases, inventory.purpose]
        self._phases = tuple(dict.fromkeys(_PHASES[n] for n in named if n in _PHASES))
        self._workloads = inventory.workloads
        self._index = {gpu.uuid: gpu.index for gpu in inventory.gpus}
        self._model = inventory.model

    def label(self, uuid: str, processes: Sequence[Process], said: Sequence[Label]) -> Label | None:
        """What is pinned for a GPU with these processes; None where a pin does not decide."""
        for workload in self._workloads:
            phase = _PHASES.get(workload.phase or "")
            if phase is not None and self._meant(workload, uuid, processes):
                return self._pinned(phase, workload, processes, said)
        if len(self._phases) == 1 and not any(w.phase for w in self._workloads):
            return self._pinned(self._phases[0], None, processes, said)
        return None

    def _meant(self, workload: Workload, uuid: str, processes: Sequence[Process]) -> bool:
        if workload.gpus and self._index.get(uuid) not in workload.gpus:
            return False
        for wanted, kinds in ((workload.user, {"user"}), (workload.unit, _UNITS)):
            if wanted is not None and not any(
                p.owner == wanted and p.owner_kind in kinds for p in processes
            ):
                return False
        return True

    def _pinned(
        self,
        phase: Phase,
        workload: Workload | None,
        processes: Sequence[Process],
        said: Sequence[Label],
    ) -> Label:
        base = said[0] if said else Label(phase, 1.0, ())
        owner = processes[0] if processes else None
        told = replace(
            base,
            phase=phase,
            confidence=1.0,
            evidence=("pinned in the configuration", *base.evidence),
            owner=base.owner or (owner.owner if owner else None),
            owner_kind=base.owner_kind or (owner.owner_kind if owner else None),
        )
        if workload is not None and workload.model is not None:
            told = replace(told, **_declared(workload))
        elif told.model is None and self._model is not None:
            told = replace(told, **_declared(Workload(model=self._model)))
        if workload is not None:
            told = replace(
                told,
                parameters=workload.parameters or told.parameters,
                precision=workload.precision or told.precision,
            )
        return told

    def narrowed(self, label: Label) -> Label:
        """A broad label from telemetry, as the one declared phase that it can mean."""
        inside = [p for p in self._phases if p in WITHIN.get(label.phase, ())]
        if len(inside) != 1:
            return label
        return replace(
            label, phase=inside[0], evidence=(*label.evidence, "the one declared phase it can be")
        )

    def described(self, segment: Segment) -> Segment:
        """A segment with what is declared of the model where nothing else tells it."""
        if segment.phase in {Phase.IDLE, Phase.UNKNOWN} or segment.model is not None:
            return segment
        if segment.parameters is not None:
            return segment
        fitting = [w for w in self._workloads if self._fits(segment.phase, w)]
        if len(fitting) != 1:
            return segment
        told = _declared(fitting[0])
        return replace(segment, **told, precision=segment.precision or fitting[0].precision)

    def _fits(self, phase: Phase, workload: Workload) -> bool:
        declared = _PHASES.get(workload.phase or "")
        return declared is not None and (phase is declared or phase in WITHIN.get(declared, ()))


class _Declared(TypedDict):
    model: str | None
    model_source: str | None
    parameters: float | None


def _declared(workload: Workload) -> _Declared:
    """What a workload of the configuration says of its model."""
    model = workload.model
    parameters = workload.parameters
    if parameters is None and model is not None:
        parameters = _parameters(model, parameters_of(model))
    return {
        "model": model,
        "model_source": None if model is None else "configuration",
        "parameters": parameters,
    }
