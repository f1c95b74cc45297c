"""The processes of each GPU, window by window: what they are, and whose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from telemetry.modelname import parameters_of
from telemetry.states import SERVES, TRAINS, Jobs
from telemetry.window import Frame
from telemetry.workload import Kind, Match, Signatures

UNKNOWN_OWNER = ("unknown", "unknown")
NOBODY = ("nobody", "none")

_KINDS = {kind.value: kind for kind in Kind}
_FINE = frozenset(
    {Kind.FULL_FINETUNING, Kind.LORA_FINETUNING, Kind.QLORA_FINETUNING, Kind.FINETUNING}
)
# What tells the ranks of one job apart, and nothing else.
_RANK = re.compile(r"--(?:local[-_])?rank[= ]\d+|(?<=[A-Za-z]_TP)\d+|(?<=[A-Za-z]_PP)\d+")


@dataclass(frozen=True, slots=True)
class Process:
    """What is known of one process; None where it is not. `job` is equal for ranks of one job."""

    kind: Kind | None
    tool: str | None
    model: str | None
    model_source: str | None
    parameters: float | None
    precision: str | None
    owner: str
    owner_kind: str
    command: str | None
    job: str


class ProcessReader:
    """Makes processes of the texts that windows keep; the same texts once."""

    def __init__(self, signatures: Signatures | None = None) -> None:
        self._signatures = signatures or Signatures.load()
        self._known: dict[tuple[str | None, ...], Process] = {}

    def by_window(self, gpu: Frame, frames: Iterable[Frame]) -> list[tuple[Process, ...]]:
        """For each window of a GPU its processes, from the frames of all `gpu_process` rows."""
        places = {start: i for i, start in enumerate(gpu.start)}
        found: list[list[Process]] = [[] for _ in gpu.start]
        for frame in frames:
            if frame.key[1] != gpu.key[1] or not frame.texts:
                continue
            for start, texts in zip(frame.start, frame.texts, strict=True):
                i = places.get(start)
                if i is not None and texts:
                    found[i].append(self._process(texts))
        kept: dict[tuple[Process, ...], tuple[Process, ...]] = {}
        return [kept.setdefault(t, t) for t in map(tuple, found)]

    def _process(self, texts: object) -> Process:
        get = texts.get  # type: ignore[attr-defined]
        key = tuple(
            get(name)
            for name in (
                "command",
                "name",
                "workload",
                "tool",
                "model",
                "model_source",
                "owner",
                "owner_kind",
                "user",
            )
        )
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._make(*key)
        return known

    def _make(
        self,
        command: str | None,
        name: str | None,
        workload: str | None,
        tool: str | None,
        model: str | None,
        model_source: str | None,
        owner: str | None,
        owner_kind: str | None,
        user: str | None,
    ) -> Process:
        match: Match | None = None if command is None else self._signatures.match(command)
        kind = _KINDS.get(workload or "") or (None if match is None else match.kind)
        if model is None and match is not None:
            model, model_source = match.model, "command" if match.model else None
        if owner is not None:
            whose = owner, owner_kind or "unknown"
        else:
            whose = (user, "user") if user is not None else UNKNOWN_OWNER
        return Process(
            kind=kind,
            tool=tool or (None if match is None else match.tool),
            model=model,
            model_source=model_source,
            parameters=None if model is None else parameters_of(model),
            precision=None if match is None else match.precision,
            owner=whose[0],
            owner_kind=whose[1],
            command=command or name,
            job=_RANK.sub("", command or name or ""),
        )


def combined_kind(processes: Sequence[Process]) -> Kind | None:
    """What a GPU's processes do together; None where none of them says."""
    kinds = {process.kind for process in processes if process.kind is not None}
    if len(kinds) <= 1:
        return next(iter(kinds), None)
    if kinds <= TRAINS:
        return Kind.FINETUNING if kinds <= _FINE else Kind.TRAINING_OR_FINETUNING
    return Kind.INFERENCE if kinds <= SERVES else Kind.MIXED


def jobs_of(
    gpu: Frame,
    processes: Sequence[tuple[Process, ...]],
    frames: Iterable[Frame],
    threads: int | None,
) -> Jobs:
    """What the states ask of the processes on a GPU."""
    kinds = {p: combined_kind(p) for p in set(processes)}
    share: list[float | None] | None = None
    if threads:
        places = {start: i for i, start in enumerate(gpu.start)}
        for frame in frames:
            cores = frame.columns.get("cpu_cores")
            if frame.key[1] != gpu.key[1] or cores is None:
                continue
            share = share or [None] * len(gpu)
            for start, value in zip(frame.start, cores, strict=True):
                i = places.get(start)
                if i is not None and value is not None:
                    share[i] = (share[i] or 0.0) + value / threads
    return Jobs([kinds[p] for p in processes], share)


def owners(processes: Sequence[Process]) -> tuple[tuple[str, str], ...]:
    """The distinct owners of a GPU's processes with their kinds, in order."""
    return tuple(sorted({(p.owner, p.owner_kind) for p in processes}))
