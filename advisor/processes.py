"""The processes of each GPU, window by window: what they are, and whose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
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
        self._seen: dict[int, tuple[Mapping[str, str], Process]] = {}

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

    def cores(self, frames: Iterable[Frame]) -> dict[tuple[int, str], float]:
        """By start of window and job, the processor cores that all of its processes keep busy."""
        found: dict[tuple[int, str], float] = {}
        for frame in frames:
            column = frame.columns.get("cpu_cores")
            if column is None or not frame.texts:
                continue
            for start, texts, cores in zip(frame.start, frame.texts, column, strict=True):
                if cores is not None and texts:
                    key = start, self._process(texts).job
                    found[key] = found.get(key, 0.0) + cores
        return found

    def _process(self, texts: Mapping[str, str]) -> Process:
        # A frame's windows share the mapping where their texts are equal.
        seen = self._seen.get(id(texts))
        if seen is not None and seen[0] is texts:
            return seen[1]
        process = self._looked_up(texts)
        self._seen[id(texts)] = texts, process
        return process

    def _looked_up(self, texts: Mapping[str, str]) -> Process:
        key = tuple(
            texts.get(name)
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


class HostJobs:
    """The processes of all GPUs of a host, so that the ranks of a job are seen together."""

    def __init__(self, gpus: Iterable[Frame], rows: Sequence[Frame], threads: int | None) -> None:
        """`rows` are the `gpu_process` frames; `threads` the hardware threads of the host."""
        reader = ProcessReader()
        self._threads = threads
        self.processes = {gpu.key[1]: reader.by_window(gpu, rows) for gpu in gpus}
        self._cores = reader.cores(rows) if threads else {}

    def of(self, gpu: Frame) -> Jobs:
        """What the states ask of the processes on a GPU."""
        processes = self.processes[gpu.key[1]]
        kinds = {p: combined_kind(p) for p in set(processes)}
        share: list[float | None] | None = None
        if self._threads and self._cores:
            jobs = {p: {process.job for process in p} for p in set(processes)}
            share = []
            for start, p in zip(gpu.start, processes, strict=True):
                cores = [c for job in jobs[p] if (c := self._cores.get((start, job))) is not None]
                share.append(sum(cores) / self._threads if cores else None)
        return Jobs([kinds[p] for p in processes], share)


def owners(processes: Sequence[Process]) -> tuple[tuple[str, str], ...]:
    """The distinct owners of a GPU's processes with their kinds, in order."""
    return tuple(sorted({(p.owner, p.owner_kind) for p in processes}))
