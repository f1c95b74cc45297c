"""Now and the last hours from the local stores, with states told on reading."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.processes import HostJobs, Process
from advisor.web.alerts import AlertBook
from advisor.web.need import needed_bytes
from advisor.web.picture import (
    GPU_READINGS,
    GPU_SERIES,
    HOST_READINGS,
    HOST_SERIES,
    AlertNow,
    GpuNow,
    HostNow,
    Picture,
    ProcessNow,
    SourceError,
)
from advisor.web.series import Points, Runs, course, runs_of, tier_of
from telemetry.metrics import DISK, GPU, HOST, MOUNT, NIC
from telemetry.states import FIELDS, HOST_FIELDS, Classifier, Surroundings, WindowState
from telemetry.store import StoreError, StoreReader
from telemetry.window import Frame

_LOOK_BACK = 1800
"""Seconds of windows that the state of now rests on: longer than any state must last to count."""

_GPU_FIELDS = tuple(n for n in GPU.fields() if n in {*FIELDS, *GPU_READINGS, *GPU_SERIES})
_HOST_FIELDS = tuple(n for n in HOST.fields() if n in {*HOST_FIELDS, *HOST_READINGS, *HOST_SERIES})
_PROCESS_FIELDS = ("memory_bytes", "sm_ratio", "cpu_cores")
_ENGINE_FIELDS = ("kv_cache_usage_ratio", "kv_cache_bytes")


class LocalSource:
    """Reads stores that agents write, while they do and after they have stopped."""

    kind = "store"
    every = 2.0

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(dict.fromkeys(paths))
        self._classifier = Classifier()
        self._books = {path: AlertBook() for path in self._paths}
        self._events_at = dict.fromkeys(self._paths, 0)
        self._seen: dict[Path, tuple[int, tuple[HostNow, ...]]] = {}

    def look(self) -> Picture:
        hosts: dict[str, HostNow] = {}
        alerts: list[AlertNow] = []
        troubles = []
        for path in self._paths:
            try:
                with _reader(path) as reader:
                    found = self._hosts(path, reader)
                    self._read_events(path, reader)
            except SourceError as error:
                troubles.append(str(error))
                continue
            for host in found:
                known = hosts.get(host.host)
                if known is None or (host.time or 0) > (known.time or 0):
                    hosts[host.host] = host
            alerts += self._books[path].shown(time.time())
        if troubles and len(troubles) == len(self._paths):
            raise SourceError("; ".join(troubles))
        return Picture(tuple(hosts[name] for name in sorted(hosts)), tuple(alerts))

    def series(self, host: str, since: int, until: int) -> dict[str, Any] | None:
        best: dict[str, Any] | None = None
        for path in self._paths:
            with _reader(path) as reader:
                if host not in reader.hosts():
                    continue
                tier = _tier(reader, host, since, until)
                told = _Told(reader, host, tier, since, until, self._classifier)
            found = told.course()
            if best is None or len(found["time"]) > len(best["time"]):
                best = found
        return best

    def _hosts(self, path: Path, reader: StoreReader) -> tuple[HostNow, ...]:
        position = reader.last_window_id()
        known = self._seen.get(path)
        if known is not None and known[0] == position:
            return known[1]
        hosts = tuple(_host_now(reader, host, self._classifier) for host in reader.hosts())
        self._seen[path] = position, hosts
        return hosts

    def _read_events(self, path: Path, reader: StoreReader) -> None:
        book = self._books[path]
        for row_id, event in reader.events(after_id=self._events_at[path]):
            self._events_at[path] = row_id
            if event.kind == "alert" and event.rule is not None and event.raised is not None:
                book.add(
                    host=event.host,
                    rule=event.rule,
                    time=event.time,
                    raised=event.raised,
                    severity=event.severity.value,
                    text=event.text,
                    gpu_uuid=event.gpu_uuid,
                    attributes=event.attributes,
                )


@contextlib.contextmanager
def _reader(path: Path) -> Iterator[StoreReader]:
    """A store, opened anew: an agent may have begun another one, or one may read it unchanging."""
    try:
        with StoreReader(path) as reader:
            yield reader
    except StoreError as error:
        raise SourceError(str(error)) from None
    except sqlite3.Error as error:
        raise SourceError(f"{path}: cannot be read ({error})") from None


def _tier(reader: StoreReader, host: str, since: int, until: int) -> int:
    """10-second windows are kept for days only: before them there are the 5-minute ones."""
    fine, coarse = reader.span(host, 10), reader.span(host, 300)
    if coarse is not None and (fine is None or max(since, coarse[0]) < fine[0] - 3600):
        return 300
    return tier_of(since, until)


class _Told:
    """The windows of one host over a time, with the states of its GPUs."""

    def __init__(
        self,
        reader: StoreReader,
        host: str,
        tier: int,
        since: int,
        until: int,
        classifier: Classifier,
    ) -> None:
        def frames(measurement: str, fields: Sequence[str], texts: bool = False) -> list[Frame]:
            return reader.frames(
                host, measurement, tier, since=since, until=until, fields=fields, texts=texts
            )

        self.host, self.tier = host, tier
        self.inventory = reader.inventory(host) or {}
        self.gpus = {f.key[1]: f for f in frames("gpu", _GPU_FIELDS, texts=True)}
        self.hosts = frames("host", _HOST_FIELDS)
        self.processes = frames("gpu_process", _PROCESS_FIELDS, texts=True)
        self.engines = frames("engine", _ENGINE_FIELDS, texts=True)
        self.agents = frames("agent", (), texts=True)
        around = Surroundings(
            self.hosts[0] if self.hosts else None,
            tuple(frames("disk", DISK.fields())),
            tuple(frames("mount", MOUNT.fields(), texts=True)),
            tuple(frames("nic", NIC.fields())),
        )
        threads = (self.inventory.get("cpu") or {}).get("threads")
        self.jobs = HostJobs(self.gpus.values(), self.processes, threads)
        self.states: dict[str, list[WindowState]] = {
            uuid: classifier.classify(frame, around, self.jobs.of(frame))
            for uuid, frame in self.gpus.items()
        }

    def heads(self) -> list[dict[str, Any]]:
        """`uuid`, `index` and `name` of each GPU: the inventory's, then others that were seen."""
        listed = [g for g in self.inventory.get("gpus", ()) if "uuid" in g and not g.get("mig")]
        known = {g["uuid"] for g in listed}
        heads = [{n: g[n] for n in ("uuid", "index", "name") if n in g} for g in listed]
        return heads + [{"uuid": uuid} for uuid in sorted(self.gpus) if uuid not in known]

    def course(self) -> dict[str, Any]:
        gpus: list[tuple[dict[str, Any], Points, Runs]] = []
        for head in self.heads():
            frame = self.gpus.get(head["uuid"])
            if frame is None:
                gpus.append((head, {}, []))
                continue
            runs = runs_of(
                (start, start + seconds, s.state.value, None if s.cause is None else s.cause.value)
                for start, seconds, s in zip(
                    frame.start, frame.seconds, self.states[head["uuid"]], strict=True
                )
            )
            gpus.append((head, _points(frame), runs))
        host = _points(self.hosts[0]) if self.hosts else {}
        return course(self.tier, gpus, host, GPU_SERIES, HOST_SERIES)


def _points(frame: Frame) -> dict[int, dict[str, float]]:
    return {start: frame.row(i) for i, start in enumerate(frame.start)}


def _host_now(reader: StoreReader, host: str, classifier: Classifier) -> HostNow:
    spans = [(tier, span) for tier in (10, 300) if (span := reader.span(host, tier)) is not None]
    if not spans:
        return HostNow(host)
    tier, (_, end) = max(spans, key=lambda pair: (pair[1][1] + (pair[0] == 10) * 300, pair[0]))
    told = _Told(reader, host, tier, end - max(_LOOK_BACK, 2 * tier), end, classifier)
    newest = max((f.start[-1] for f in [*told.gpus.values(), *told.hosts] if len(f)), default=None)
    gpus = tuple(_gpu_now(told, head, newest) for head in told.heads())
    readings, seconds = None, None
    if told.hosts:
        frame = told.hosts[0]
        readings = {n: v for n, v in frame.row(-1).items() if n in HOST_READINGS}
        seconds = float(frame.seconds[-1])
    version = next((f.texts[-1].get("version") for f in told.agents if f.texts), None)
    return HostNow(host, float(end), seconds, gpus, readings, version)


def _gpu_now(told: _Told, head: Mapping[str, Any], newest: int | None) -> GpuNow:
    uuid = head["uuid"]
    frame = told.gpus.get(uuid)
    name, index = head.get("name"), head.get("index")
    if frame is None or not len(frame):
        return GpuNow(uuid, index=index, name=name)
    texts = frame.texts[-1]
    if name is None:
        name = texts.get("gpu_model")
    read = _last_read(frame)
    if read is None or frame.start[read] != newest:  # it was read of late, or never, not now
        end = None if read is None else float(frame.start[read] + frame.seconds[read])
        return GpuNow(uuid, end, index, name, error=texts.get("error"))
    end = float(frame.start[read] + frame.seconds[read])
    states = told.states[uuid]
    state = states[-1]
    since = frame.start[-1]
    for i in range(len(states) - 1, -1, -1):
        if states[i].state is not state.state:
            break
        since = frame.start[i]
    readings = {n: v for n, v in frame.row(-1).items() if n in GPU_READINGS}
    return GpuNow(
        uuid=uuid,
        time=end,
        index=index,
        name=name,
        state=state.state.value,
        cause=None if state.cause is None else state.cause.value,
        note=None if state.note is None else state.note.value,
        confidence=state.confidence,
        state_since=float(since),
        evidence=state.evidence,
        error=texts.get("error"),
        readings=readings,
        memory_needed_bytes=needed_bytes(
            told.engines, uuid, _last(told.jobs, uuid), frame.start[-1]
        ),
        processes=tuple(_processes(told.processes, uuid, frame.start[-1])),
    )


def _last_read(frame: Frame) -> int | None:
    """The newest window in which anything of the GPU was read, its size apart."""
    columns = [c for n, c in frame.columns.items() if n in GPU_READINGS and "_total_" not in n]
    return next(
        (i for i in range(len(frame) - 1, -1, -1) if any(c[i] is not None for c in columns)), None
    )


def _last(jobs: HostJobs, uuid: str) -> tuple[Process, ...]:
    windows = jobs.processes.get(uuid, [])
    return windows[-1] if windows else ()


def _processes(frames: Sequence[Frame], uuid: str, start: int) -> Iterator[ProcessNow]:
    for frame in frames:
        if frame.key[1] != uuid or not len(frame) or frame.start[-1] != start:
            continue
        texts, row = frame.texts[-1], frame.row(-1)
        yield ProcessNow(
            name=texts.get("name") or texts.get("command"),
            pid=texts.get("pid"),
            owner=texts.get("owner") or texts.get("user"),
            owner_kind=texts.get("owner_kind"),
            workload=texts.get("workload"),
            model=texts.get("model"),
            memory_bytes=row.get("memory_bytes"),
            sm_ratio=row.get("sm_ratio"),
        )
