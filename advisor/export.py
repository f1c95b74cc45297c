"""History becomes Talla's own CSV: one row a 5-minute window and GPU, all statistics by suffix.

What the CSV cannot carry: events, the agent's own health, all but the busiest disk, mount and NIC
of a window, and of a process all but its command line.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TextIO

from advisor.history import History
from advisor.importers.processes import SEPARATOR
from telemetry.metrics import DISK, ENGINE, GPU, GPU_PROCESS, HOST, MOUNT, NIC, Family
from telemetry.window import Frame, Key

_DAY = 86_400
_PREFIXES = {
    "host": "host_",
    "disk": "disk_",
    "mount": "mount_",
    "nic": "nic_",
    "engine": "engine_",
}
_FAMILIES = (GPU, HOST, DISK, MOUNT, NIC, ENGINE)
# What makes a device the busiest of its kind in a window, in this order.
_LOADS = {
    "disk": ("busy_ratio", "read_bytes_per_second", "write_bytes_per_second"),
    "mount": ("read_bytes_per_second", "write_bytes_per_second"),
    "nic": ("rx_link_ratio", "rx_bytes_per_second", "tx_bytes_per_second"),
}
# Not measured but computed by whoever reads, from the rest.
_COMPUTED = ("state", "cause")


@dataclass(slots=True)
class _Subject:
    """One row of one subject in one window."""

    key: Key
    values: dict[str, float]
    texts: Mapping[str, str]


@dataclass(slots=True)
class _Moment:
    """All rows of one host in one window."""

    seconds: int
    rows: dict[str, list[_Subject]] = field(default_factory=dict)


def export_csv(history: History, out: TextIO) -> int:
    """Writes every host's 5-minute windows; returns the number of rows.

    The columns are those that have a value anywhere. Two passes, a day at a time, so that a
    year of a fleet does not have to fit in memory.
    """
    columns: dict[str, None] = {}
    for record in _records(history):
        columns.update(dict.fromkeys(record))
    writer = csv.DictWriter(out, _in_order(columns), restval="")
    writer.writeheader()
    rows = 0
    for record in _records(history):
        writer.writerow(record)
        rows += 1
    return rows


def _in_order(used: Iterable[str]) -> list[str]:
    """The columns in use, in the order of the declarations."""
    order = ["time", "host", "seconds", "gpu_uuid"]
    for family in _FAMILIES:
        prefix = _PREFIXES.get(family.measurement, "")
        order += (prefix + n for n in (*_tags(family), *family.texts, *family.fields()))
    order.append("processes")
    present = set(used)
    return [name for name in dict.fromkeys(order) if name in present]


def _tags(family: Family) -> list[str]:
    return ["path" if t == "mount" else t for t in family.tags] if family is not GPU else []


def _records(history: History) -> Iterator[dict[str, str]]:
    for host in history.hosts():
        span = history.span(host)
        if span is None:
            continue
        for since in range(span[0], span[1], _DAY):
            moments = _moments(history, host, since, min(since + _DAY, span[1]))
            for start in sorted(moments):
                yield from _of_moment(host, start, moments[start])


def _moments(history: History, host: str, since: int, until: int) -> dict[int, _Moment]:
    moments: dict[int, _Moment] = {}
    for family in (*_FAMILIES, GPU_PROCESS):
        frames = history.frames(
            host,
            family.measurement,
            since=since,
            until=until,
            fields=family.fields(),
            texts=True,
        )
        for frame in frames:
            for i in range(len(frame)):
                moment = moments.setdefault(frame.start[i], _Moment(frame.seconds[i]))
                moment.rows.setdefault(family.measurement, []).append(_subject(frame, i))
    return moments


def _subject(frame: Frame, i: int) -> _Subject:
    return _Subject(frame.key, frame.row(i), frame.texts[i])


def _of_moment(host: str, start: int, moment: _Moment) -> Iterator[dict[str, str]]:
    shared = {
        "time": datetime.fromtimestamp(start, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "host": host,
        "seconds": str(moment.seconds),
    }
    for family in (HOST, DISK, MOUNT, NIC):
        rows = moment.rows.get(family.measurement, [])
        if rows:
            shared.update(_cells(family, _busiest(family.measurement, rows)))
    gpus = moment.rows.get("gpu", [])
    if not gpus:
        yield shared
    for gpu in gpus:
        uuid = gpu.key[1]
        record = {**shared, "gpu_uuid": uuid, **_cells(GPU, gpu)}
        engine = _engine_of(uuid, moment.rows.get("engine", []))
        if engine is not None:
            record.update(_cells(ENGINE, engine))
        commands = [
            p.texts["command"].replace(SEPARATOR, "|")
            for p in moment.rows.get("gpu_process", [])
            if p.key[1] == uuid and "command" in p.texts
        ]
        if commands:
            record["processes"] = SEPARATOR.join(commands)
        yield record


def _cells(family: Family, subject: _Subject) -> dict[str, str]:
    prefix = _PREFIXES.get(family.measurement, "")
    cells = dict(zip((prefix + t for t in _tags(family)), subject.key[1:], strict=False))
    for name, text in subject.texts.items():
        if name not in _COMPUTED:
            cells[prefix + name] = text
    for name, value in subject.values.items():
        cells[prefix + name] = _number(value)
    return cells


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _busiest(measurement: str, rows: list[_Subject]) -> _Subject:
    loads = _LOADS.get(measurement, ())
    return max(rows, key=lambda r: tuple(r.values.get(n, -1.0) for n in loads))


def _engine_of(uuid: str, engines: list[_Subject]) -> _Subject | None:
    """The engine that says it runs on this GPU; the only one, where it does not say."""
    for engine in engines:
        if uuid in engine.texts.get("gpu_uuids", "").replace(",", " ").split():
            return engine
    silent = [e for e in engines if "gpu_uuids" not in e.texts]
    return silent[0] if len(engines) == 1 and silent else None
