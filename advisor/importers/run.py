"""Imports logs into a store: read, make windows, keep them, say what was and was not used."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from pathlib import Path

from advisor.errors import AdvisorError, UsageError
from advisor.importers.columns import ColumnMap
from advisor.importers.engines import name_engines
from advisor.importers.equipment import inventory_of
from advisor.importers.keeping import Existing, Kept, keep
from advisor.importers.processes import Processes
from advisor.importers.reader import SECONDS, FileReader, Options, name_by_bus
from advisor.importers.recording import Complaints, Log, Recording
from advisor.importers.timeline import slices, usual_step
from advisor.importers.windows import MEAN_STEP, Combiner, is_aggregate, split
from advisor.inventories import imported_uuid, read_file
from telemetry.aggregate import Aggregator
from telemetry.inventory import Inventory
from telemetry.metrics import COVERED_SECONDS
from telemetry.signals import Signals
from telemetry.store import Store
from telemetry.store_lock import check_folder
from telemetry.window import TIERS, Sample, Window
from telemetry.workload import Signatures

_SHORT, _LONG = TIERS[0], TIERS[-1]
_JITTER = 0.98  # a log of every minute has steps of 59.9 s
_WHOLE_READING = 2.0  # shorter rows are not cut at the ends of windows, so that counts stay counts


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be imported, and what the person tells about it. Times in Unix seconds."""

    files: tuple[Path, ...]
    store: Path
    host: str | None = None
    gpu_model: str | None = None
    gpus: int | None = None
    interval: float | None = None
    inventory: Path | None = None
    start: float | None = None
    zone: tzinfo | None = None
    columns: tuple[str, ...] | None = None
    origin: int | None = None
    """Where windows are counted from; by default as those of the store, else the first row."""


@dataclass(slots=True)
class HostSummary:
    """What was imported of one host. The period is [since, until), the step in seconds."""

    host: str
    gpus: int
    since: int
    until: int
    step: float
    windows: Kept


@dataclass(slots=True)
class Summary:
    """What was imported, and what was not."""

    rows: int
    duplicates: int
    lines: Complaints
    cells: Complaints
    unknown_columns: list[str]
    notes: list[str]
    hosts: list[HostSummary] = field(default_factory=list)


def import_logs(request: Request, progress: Callable[[Path, int], None] | None = None) -> Summary:
    """Raises AdvisorError or StoreError, with the store as it was, where nothing can be used.

    `progress` is told the file being read and its bytes read so far.
    """
    declared, notes = _declared(request)
    log = Log(notes=notes)
    uuids = {
        (i.host, g.index): g.uuid for i in declared.values() for g in i.gpus if g.index is not None
    }

    def uuid(host: str, index: int) -> str:
        return uuids.get((host, index)) or imported_uuid(host, index)

    # Before minutes are spent on reading: a store that cannot be written is refused.
    check_folder(request.store)
    store = Store(request.store) if request.store.exists() else None
    try:
        _read(request, log, uuid, progress)
        if store is None:
            store = Store(request.store)
        summary = Summary(
            log.rows, log.duplicates, log.lines, log.cells, log.unknown_columns, log.notes
        )
        for recording in log.recordings.values():
            _note_models(log, recording, request, declared)
            summary.hosts.append(_keep(store, recording, request, declared.get(recording.host)))
        return summary
    finally:
        if store is not None:
            store.close()


def _note_models(
    log: Log, recording: Recording, request: Request, declared: dict[str, Inventory]
) -> None:
    """Without the card's model, neither phases nor sizes can be told from its load."""
    named = request.gpu_model or recording.host in declared
    nameless = [u for u in recording.tracks if u and not recording.facts[u].model]
    if nameless and not named:
        log.note(
            f"{recording.host}: the log does not say which GPUs these are, and little can be told"
            " without it: --gpu-model or --inventory tells"
        )


def _declared(request: Request) -> tuple[dict[str, Inventory], list[str]]:
    """The inventories that were given, by host, and a note of keys that were not known."""
    if request.inventory is None:
        return {}, []
    told = read_file(request.inventory, request.host)
    inventories = {i.host: i for i in told.inventories}
    if request.host is not None and len(inventories) == 1:
        only = next(iter(inventories.values()))
        inventories = {request.host: replace(only, host=request.host)}
    notes = (
        [f"{request.inventory}: keys that Talla does not know: {', '.join(told.unknown_keys)}"]
        if told.unknown_keys
        else []
    )
    return inventories, notes


def _read(
    request: Request,
    log: Log,
    uuid: Callable[[str, int], str],
    progress: Callable[[Path, int], None] | None,
) -> None:
    options = Options(
        uuid,
        request.host,
        request.gpus,
        request.interval,
        request.start,
        request.zone,
        request.columns,
    )
    columns = ColumnMap.load()
    for number, path in enumerate(request.files):

        def told(done: int, path: Path = path) -> None:
            if progress is not None:
                progress(path, done)

        FileReader(path, number, log, options, columns).read(told)
    for recording in log.recordings.values():
        name_by_bus(recording, uuid)
    names = ", ".join(map(str, request.files))
    if log.rows == 0:
        if log.lines.count:
            raise AdvisorError(
                f"{names}: none of {log.lines.count} lines could be read; {log.lines.first}"
            )
        raise AdvisorError(f"{names}: holds no rows; nothing was imported")
    if request.gpus is not None:
        for recording in log.recordings.values():
            seen = sum(1 for key in recording.tracks if key is not None)
            if seen > request.gpus:
                raise UsageError(
                    f"--gpus {request.gpus}: {names} shows {seen} GPUs of {recording.host}"
                )


def _keep(
    store: Store, recording: Recording, request: Request, declared: Inventory | None
) -> HostSummary:
    tracks = list(recording.tracks.values())
    if request.gpu_model is not None:
        for facts in recording.facts.values():
            facts.model = facts.model or request.gpu_model
    step = usual_step(tracks, request.interval)
    since = math.floor(min(min(t.times) for t in tracks))
    until = max(max(t.times) for t in tracks) + max(step, _LONG)
    existing = Existing(store, recording.host, since, until)
    origin = existing.origin(since) if request.origin is None else request.origin
    kept = keep(store, existing, _windows(recording, step, origin))
    inventory = declared or inventory_of(recording, request.gpu_model, request.gpus)
    document = inventory.to_json()
    if store.inventory(recording.host) != document:
        store.append(inventories=[(since, recording.host, document)])
    gpus = sum(1 for t in tracks if t.uuid is not None)
    return HostSummary(recording.host, gpus, since, kept.until, step, kept)


def _windows(recording: Recording, step: float, origin: int) -> Iterator[Window]:
    """The windows of a host, each tier in order of time."""
    signals = Signals.load()
    processes = Processes(Signatures.load())
    name_engines(recording)
    samples = slices(recording, step, processes.rows)
    aggregate = is_aggregate(recording)
    whole = aggregate and all(SECONDS in t.values for t in recording.tracks.values())
    if whole or step >= MEAN_STEP * _JITTER:
        # Windows of an export are taken as they are; longer means are cut to 5-minute windows.
        yield from _combined(
            samples if whole else split(samples, origin, _LONG),
            Combiner(
                recording.host, _LONG, origin, signals=None if whole else signals, whole=whole
            ),
        )
        return
    if step > _WHOLE_READING:
        samples = split(samples, origin, _SHORT)
    if aggregate:
        yield from _combined(
            samples,
            *(
                Combiner(recording.host, tier, origin, signals=signals, instants=True)
                for tier in TIERS
            ),
        )
        return
    aggregator = Aggregator(recording.host, signals, origin=origin)
    for sample in samples:
        for key in sample.texts:
            if key[0] == "gpu_process":
                # No reading but its time: the row is covered as long as the process is seen.
                sample.rows[key] = {COVERED_SECONDS: sample.seconds}
        yield from aggregator.add(sample)
    yield from aggregator.flush()


def _combined(samples: Iterator[Sample], *combiners: Combiner) -> Iterator[Window]:
    for sample in samples:
        for combiner in combiners:
            rows = {key: dict(values) for key, values in sample.rows.items()}
            yield from combiner.add(Sample(sample.time, rows, sample.texts, sample.seconds))
    for combiner in combiners:
        yield from combiner.flush()
