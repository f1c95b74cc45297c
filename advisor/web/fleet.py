"""Now and the last hours of a fleet, from InfluxDB; states are those that the agents ship."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from advisor.influxql import InfluxQL, NoAnswer, Series, quoted
from advisor.service.config import InfluxReading
from advisor.web.alerts import AlertBook
from advisor.web.picture import (
    GPU_READINGS,
    GPU_SERIES,
    HOST_READINGS,
    HOST_SERIES,
    GpuNow,
    HostNow,
    Picture,
    ProcessNow,
    SourceError,
)
from advisor.web.series import Points, course, runs_of, tier_of

_NOW = "time > now() - 15m"
_GPU_TEXTS = ("state", "cause", "error")
_PROCESS = (
    "name", "pid", "owner", "owner_kind", "user", "workload", "model", "memory_bytes", "sm_ratio",
)  # fmt: skip
_EVENT = ("raised", "severity", "text", "attributes")
_ALERTS_BACK_SECONDS = 14 * 86_400
_LATE_SECONDS = 3600
"""Events that arrive this late are still seen."""


class FleetSource:
    """Every host that ships to one InfluxDB."""

    kind = "influxdb"
    every = 10.0

    def __init__(self, settings: InfluxReading) -> None:
        self._fine = InfluxQL(settings)
        self._coarse = (
            InfluxQL(settings, settings.database_5m) if settings.database_5m else self._fine
        )
        self._alerts = AlertBook()
        self._events_since = time.time() - _ALERTS_BACK_SECONDS

    def look(self) -> Picture:
        def newest(fields: tuple[str, ...], measurement: str, tags: str) -> str:
            return (
                f'SELECT {_names(fields)} FROM "{measurement}" WHERE "window" = \'10s\' AND {_NOW}'
                f" GROUP BY {tags} ORDER BY time DESC LIMIT 1"
            )

        alerts = (
            f'SELECT {_names(_EVENT)} FROM "event" WHERE "kind" = \'alert\''
            f" AND time > {int(self._events_since)}s"
            ' GROUP BY "host", "rule", "gpu_uuid"'
        )
        answer = self._ask(
            "; ".join(
                (
                    'SHOW TAG VALUES FROM "host" WITH KEY = "host"',
                    newest(
                        ("window_seconds", *GPU_READINGS, *_GPU_TEXTS),
                        "gpu",
                        '"host", "gpu_uuid", "gpu_model"',
                    ),
                    newest(_PROCESS, "gpu_process", '"host", "gpu_uuid", "slot"'),
                    newest(("window_seconds", *HOST_READINGS), "host", '"host"'),
                    newest(("version",), "agent", '"host"'),
                    alerts,
                )
            )
        )
        self._read_events(answer["event"])
        found = {row["value"] for series in answer["tags"] for row in series.records()}
        heads = {series.tags["host"]: series for series in answer["host"]}
        versions = {s.tags["host"]: s.records()[0].get("version") for s in answer["agent"]}
        by_gpu = _by_gpu(answer["gpu_process"])
        cards: dict[str, list[GpuNow]] = {}
        for series in _newest_of_each(answer["gpu"]):
            host = series.tags["host"]
            cards.setdefault(host, []).append(_gpu(series, by_gpu))
        return Picture(
            tuple(
                _host(host, heads.get(host), cards.get(host, []), versions.get(host))
                for host in sorted(found | cards.keys())
            ),
            self._alerts.shown(time.time()),
        )

    def series(self, host: str, since: int, until: int) -> dict[str, Any] | None:
        tier = tier_of(since, until)
        told = self._course(host, since, until, tier)
        # 10-second windows are kept for days only: before them there are the 5-minute ones.
        return self._course(host, since, until, 300) if told is None and tier == 10 else told

    def _course(self, host: str, since: int, until: int, tier: int) -> dict[str, Any] | None:
        where = (
            f'"host" = {quoted(host)} AND "window" = {quoted("10s" if tier == 10 else "5m")}'
            f" AND time >= {since}s AND time < {until}s"
        )
        answer = self._ask(
            f"SELECT {_names(('window_seconds', *GPU_SERIES, *_GPU_TEXTS))}"
            f' FROM "gpu" WHERE {where} GROUP BY "gpu_uuid", "gpu_model";'
            f' SELECT {_names(HOST_SERIES)} FROM "host" WHERE {where}',
            tier,
        )
        gpus, hosts = answer["gpu"], answer["host"]
        if not gpus and not hosts:
            return None
        cards = []
        for series in sorted(gpus, key=lambda s: s.tags["gpu_uuid"]):
            head = {"uuid": series.tags["gpu_uuid"], "name": series.tags.get("gpu_model")}
            records = series.records()
            runs = runs_of(
                (
                    row["time"],
                    row["time"] + int(row.get("window_seconds", tier)),
                    row.get("state", "unknown"),
                    row.get("cause"),
                )
                for row in records
            )
            cards.append((head, _points(records), runs))
        host_points = _points([row for s in hosts for row in s.records()])
        return course(tier, cards, host_points, GPU_SERIES, HOST_SERIES)

    def _ask(self, statements: str, tier: int = 10) -> dict[str, list[Series]]:
        """The series of all statements by measurement, times in seconds; `tags` are listed ones."""
        found: dict[str, list[Series]] = defaultdict(list)
        try:
            client = self._fine if tier == 10 else self._coarse
            answer = client.query(statements)
        except NoAnswer as error:
            raise SourceError(str(error)) from None
        for series in answer:
            listed = tuple(series.columns) == ("key", "value")
            found["tags" if listed else series.name].append(series if listed else _seconds(series))
        return found

    def _read_events(self, found: list[Series]) -> None:
        for series in found:
            for row in series.records():
                rule = series.tags.get("rule")
                if not rule or "raised" not in row:
                    continue
                self._alerts.add(
                    host=series.tags["host"],
                    rule=rule,
                    time=float(row["time"]),
                    raised=bool(row["raised"]),
                    severity=row.get("severity", "info"),
                    text=row.get("text", ""),
                    gpu_uuid=series.tags.get("gpu_uuid") or None,
                    attributes=_attributes(row.get("attributes")),
                )
        self._events_since = max(self._events_since, time.time() - _LATE_SECONDS)


def _names(fields: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in fields)


def _seconds(series: Series) -> Series:
    rows = [[row[0] // 1_000_000_000, *row[1:]] for row in series.rows]
    return Series(series.name, series.tags, series.columns, rows)


def _points(records: list[dict[str, Any]]) -> Points:
    return {
        row["time"]: {n: v for n, v in row.items() if n != "time" and isinstance(v, float | int)}
        for row in records
    }


def _attributes(document: str | None) -> dict[str, str]:
    try:
        found = json.loads(document or "{}")
    except ValueError:
        return {}
    return {str(n): str(v) for n, v in found.items()} if isinstance(found, dict) else {}


def _newest_of_each(gpus: list[Series]) -> list[Series]:
    """One series a GPU: a card whose model was told late, or changed, has two."""
    kept: dict[tuple[str, str], Series] = {}
    for series in gpus:
        key = series.tags["host"], series.tags["gpu_uuid"]
        known = kept.get(key)
        if known is None or series.rows[0][0] > known.rows[0][0]:
            kept[key] = series
    return [kept[key] for key in sorted(kept)]


def _gpu(series: Series, processes: dict[tuple[str, str], list[tuple[int, ProcessNow]]]) -> GpuNow:
    row = series.records()[0]
    uuid, host = series.tags["gpu_uuid"], series.tags["host"]
    end = float(row["time"]) + row.get("window_seconds", 10.0)
    return GpuNow(
        uuid=uuid,
        time=end,
        name=series.tags.get("gpu_model") or None,
        state=row.get("state", "unknown"),
        cause=row.get("cause"),
        error=row.get("error"),
        readings={n: float(row[n]) for n in GPU_READINGS if n in row},
        processes=tuple(p for at, p in processes.get((host, uuid), []) if at == row["time"]),
    )


def _by_gpu(found: list[Series]) -> dict[tuple[str, str], list[tuple[int, ProcessNow]]]:
    processes: dict[tuple[str, str], list[tuple[int, ProcessNow]]] = {}
    for series in found:
        row = series.records()[0]
        process = ProcessNow(
            name=row.get("name"),
            pid=row.get("pid"),
            owner=row.get("owner") or row.get("user"),
            owner_kind=row.get("owner_kind"),
            workload=row.get("workload"),
            model=row.get("model"),
            memory_bytes=row.get("memory_bytes"),
            sm_ratio=row.get("sm_ratio"),
        )
        key = series.tags["host"], series.tags["gpu_uuid"]
        processes.setdefault(key, []).append((row["time"], process))
    return processes


def _host(name: str, series: Series | None, gpus: list[GpuNow], version: str | None) -> HostNow:
    ends = [gpu.time for gpu in gpus if gpu.time is not None]
    if series is None:
        return HostNow(name, max(ends, default=None), None, tuple(gpus), None, version)
    row = series.records()[0]
    seconds = float(row.get("window_seconds", 10.0))
    end = max([*ends, row["time"] + seconds])
    # A card that has been silent longer than the others says nothing of now.
    settled = tuple(
        gpu
        if gpu.readings and gpu.time is not None and gpu.time > end - 2.5 * seconds
        else GpuNow(gpu.uuid, gpu.time, gpu.index, gpu.name, error=gpu.error)
        for gpu in gpus
    )
    readings = {n: float(row[n]) for n in HOST_READINGS if n in row}
    return HostNow(name, end, seconds, settled, readings, version)
