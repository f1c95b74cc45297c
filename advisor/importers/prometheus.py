"""dcgm-exporter's series in Prometheus or VictoriaMetrics, and node_exporter's beside them.

`GET /api/v1/query_range`, https://prometheus.io/docs/prometheus/latest/querying/api/ ; labels and
names: https://github.com/NVIDIA/dcgm-exporter (Hostname, UUID, gpu, modelName) and
https://github.com/prometheus/node_exporter (nodename of node_uname_info).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import urllib3

from advisor.errors import AdvisorError
from advisor.importers.remote import Row
from telemetry.bounded import Endless, ask

_MOST_BYTES = 256 << 20
_DCGM = "DCGM_FI_.+"
_HOST_QUERIES = {
    "host_memory_total_bytes": "node_memory_MemTotal_bytes{%s}",
    "host_memory_used_bytes": "node_memory_MemTotal_bytes{%s} - node_memory_MemAvailable_bytes{%s}",
    "host_cpu_busy_ratio": '1 - avg(rate(node_cpu_seconds_total{mode="idle",%s}[2m]))',
    "host_pressure_cpu_some_ratio": "rate(node_pressure_cpu_waiting_seconds_total{%s}[2m])",
    "host_pressure_io_some_ratio": "rate(node_pressure_io_waiting_seconds_total{%s}[2m])",
    "host_pressure_memory_some_ratio": "rate(node_pressure_memory_waiting_seconds_total{%s}[2m])",
}
"""Our columns and what they are of node_exporter's series of one instance."""


class Prometheus:
    """A server with that interface."""

    def __init__(
        self, url: str, *, token: str = "", step: float = 30.0, timeout: float = 60.0
    ) -> None:
        """`step` is the seconds between two readings that are asked for, `token` a bearer's."""
        self._url = url.rstrip("/")
        self._step = step
        self._timeout = timeout
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager()
        self._instances: dict[str, str] | None = None

    def hosts(self, since: int, until: int) -> Sequence[str]:
        """By the label Hostname, or instance where there is none."""
        series = self._get(
            "series",
            {"match[]": f'{{__name__=~"{_DCGM}"}}', "start": str(since), "end": str(until)},
        )
        return sorted({_host(labels) for labels in series})

    def rows(self, host: str, since: int, until: int) -> Iterable[Row]:
        """A row a GPU and time; the host's own readings are on each."""
        quoted = json.dumps(host)
        found: dict[tuple[float, str], dict[str, str | float]] = {}
        for one in self._range(f'{{__name__=~"{_DCGM}",Hostname={quoted}}}', since, until) or (
            self._range(f'{{__name__=~"{_DCGM}",instance=~{_instance(host)}}}', since, until)
        ):
            labels = one["metric"]
            uuid = labels.get("UUID", "")
            if not uuid or "GPU_I_ID" in labels:
                continue  # a MIG instance: its share of the card's readings has other meanings
            for time, value in one["values"]:
                row = found.setdefault(
                    (time, uuid),
                    {
                        "time": time,
                        "host": host,
                        "gpu_uuid": uuid,
                        "index": labels.get("gpu", ""),
                        "gpu_model": labels.get("modelName", ""),
                    },
                )
                row[labels["__name__"]] = value
        if found:
            own = self._own(host, since, until)
            for (time, _), row in found.items():
                row.update(own.get(time, {}))
        return [found[key] for key in sorted(found)]

    def _own(self, host: str, since: int, until: int) -> dict[float, dict[str, str]]:
        """node_exporter's readings of the host by time and column."""
        instance = self._instance_of(host, since, until)
        found: dict[float, dict[str, str]] = {}
        if instance is None:
            return found
        selector = f"instance={json.dumps(instance)}"
        for column, query in _HOST_QUERIES.items():
            for one in self._range(query.replace("%s", selector), since, until):
                for time, value in one["values"]:
                    found.setdefault(time, {})[column] = value
        return found

    def _instance_of(self, host: str, since: int, until: int) -> str | None:
        if self._instances is None:
            self._instances = {}
            asked = {"start": str(since), "end": str(until)}
            for labels in self._get("series", {"match[]": "node_uname_info", **asked}):
                self._instances[labels.get("nodename", "")] = labels["instance"]
            for labels in self._get("series", {"match[]": "node_memory_MemTotal_bytes", **asked}):
                name = labels["instance"].rpartition(":")[0] or labels["instance"]
                self._instances.setdefault(name, labels["instance"])
        return self._instances.get(host)

    def _range(self, query: str, since: int, until: int) -> list[dict[str, Any]]:
        fields = {
            "query": query,
            "start": str(since),
            "end": str(until - 1),  # the end is included
            "step": f"{self._step:g}",
        }
        return list(self._get("query_range", fields)["result"])

    def _get(self, what: str, fields: Mapping[str, str]) -> Any:
        try:
            status, body = ask(
                self._pool,
                "GET",
                f"{self._url}/api/v1/{what}",
                fields=dict(fields),
                headers=self._headers,
                seconds=self._timeout,
                most_bytes=_MOST_BYTES,
            )
        except Endless as error:
            raise AdvisorError(f"{self._url}: {error}") from None
        except urllib3.exceptions.HTTPError as error:
            raise AdvisorError(f"{self._url}: cannot be read ({type(error).__name__})") from None
        try:
            document = json.loads(body)
            if status == 200 and document["status"] == "success":
                return document["data"]
            words = document.get("error", "")
        except (ValueError, KeyError, TypeError, AttributeError):
            words = ""
        words = words or "is it the address of a Prometheus?"
        raise AdvisorError(f"{self._url}: answers {status}: {words}")


def _host(labels: Mapping[str, str]) -> str:
    named = labels.get("Hostname")
    instance = labels.get("instance", "")
    return named or instance.rpartition(":")[0] or instance or "unknown"


def _instance(host: str) -> str:
    escaped = "".join(c if c.isalnum() or c in "_-" else f"\\{c}" for c in host)
    return json.dumps(f"{escaped}(:[0-9]+)?")


__all__ = ["Prometheus"]
