"""What is wrong with the hardware as it stands, from the inventory and what is declared of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from advisor.catalogue import find_model
from advisor.finding import Finding
from advisor.history import History
from advisor.phase import Phase
from advisor.rulebook import Rulebook
from advisor.sizing import judge
from advisor.sizing.case import Case
from telemetry.inventory import Inventory, Workload
from telemetry.metrics import COVERED_SECONDS
from telemetry.modelname import precision_in

LAST_SECONDS = 3600
"""How far back a process counts as last seen."""

_PHASES = {phase.value: phase for phase in Phase}


@dataclass(frozen=True, slots=True)
class Work:
    """What is known of the work on a server without judging its windows."""

    phases: frozenset[Phase] = frozenset()
    parameters: tuple[float, ...] = ()
    precisions: frozenset[str] = frozenset()
    gpus_of_one_model: int | None = None

    def __or__(self, other: Work) -> Work:
        return Work(
            self.phases | other.phases,
            self.parameters + other.parameters,
            self.precisions | other.precisions,
            max(self.gpus_of_one_model or 0, other.gpus_of_one_model or 0) or None,
        )


@dataclass(slots=True)
class _Heap:
    phases: set[Phase] = field(default_factory=set)
    parameters: list[float] = field(default_factory=list)
    precisions: set[str] = field(default_factory=set)
    gpus: int = 0


def check(
    inventory: Inventory, rulebook: Rulebook, seen: Work | None = None
) -> tuple[Finding, ...]:
    """The findings that need no samples; the overall is under on a physical one, else abstains."""
    return judge(case_of_inventory(inventory, rulebook, seen))


def case_of_inventory(inventory: Inventory, rulebook: Rulebook, seen: Work | None = None) -> Case:
    """What sizing looks at where nothing but the inventory is known."""
    work = declared_work(inventory) | (seen or Work())
    return Case(
        inventory,
        rulebook.profiles,
        rulebook.thresholds,
        phases=dict.fromkeys(sorted(work.phases), 1.0 / max(1, len(work.phases))),
        parameters=work.parameters,
        precisions=work.precisions,
        gpus_of_one_model=work.gpus_of_one_model,
    )


def declared_work(inventory: Inventory) -> Work:
    """What the configuration says: pinned phases, the purpose where it names one, workloads."""
    named = [*inventory.pinned_phases, inventory.purpose]
    pinned = {_PHASES[name] for name in named if name in _PHASES}
    work = Work(frozenset(pinned)) | _work_of(inventory.workloads)
    if inventory.model is not None and not work.parameters:
        precision = precision_in(inventory.model)
        work |= _work_of([Workload(model=inventory.model, precision=precision)])
    return work


def last_seen_work(history: History, host: str) -> Work:
    """What the processes of the newest hour say of themselves."""
    span = history.span(host)
    if span is None:
        return Work()
    frames = history.frames(
        host,
        "gpu_process",
        since=span[1] - LAST_SECONDS,
        until=span[1],
        fields=[COVERED_SECONDS],
        texts=True,
    )
    from telemetry.workload import Signatures

    signatures = Signatures.load()
    workloads = []
    cards: dict[tuple[str, str], set[str]] = {}
    for frame in frames:
        for texts in frame.texts[-1:]:
            if "model" in texts and "owner" in texts:
                cards.setdefault((texts["model"], texts["owner"]), set()).add(frame.key[1])
            match = signatures.match(texts.get("command", ""))
            workloads.append(
                Workload(
                    phase=texts.get("workload"),
                    model=texts.get("model"),
                    parameters=match.parameters if match else None,
                    precision=match.precision if match else None,
                )
            )
    most = max((len(uuids) for uuids in cards.values()), default=0)
    return replace(_work_of(workloads), gpus_of_one_model=most or None)


def _work_of(workloads: Iterable[Workload]) -> Work:
    heap = _Heap()
    for workload in workloads:
        if workload.phase in _PHASES:
            heap.phases.add(_PHASES[workload.phase])
        model = find_model(workload.model) if workload.model else None
        parameters = workload.parameters or (model.parameters if model else None)
        if parameters is not None:
            heap.parameters.append(float(parameters))
        if workload.precision is not None:
            heap.precisions.add(workload.precision)
        if workload.model is not None or parameters is not None:
            heap.gpus = max(heap.gpus, len(set(workload.gpus)))
    return Work(
        frozenset(heap.phases),
        tuple(heap.parameters),
        frozenset(heap.precisions),
        heap.gpus or None,
    )
