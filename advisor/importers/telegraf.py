"""Telegraf's measurement `nvidia_smi` in InfluxDB.

Tags host, index, name, uuid; fields as in nvidia-smi, which the import of files knows:
https://github.com/influxdata/telegraf/tree/master/plugins/inputs/nvidia_smi
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from advisor.importers.remote import Row
from advisor.influxql import InfluxQL, quoted
from advisor.service.config import InfluxReading

_MEASUREMENT = "nvidia_smi"
_FIELDS = (
    "utilization_gpu",
    "utilization_memory",
    "memory_used",
    "memory_total",
    "memory_reserved",
    "power_draw",
    "power_limit",
    "temperature_gpu",
    "clocks_current_sm",
    "clocks_current_memory",
    "pcie_link_gen_current",
    "pcie_link_width_current",
    "driver_version",
)


class Telegraf:
    """One database."""

    def __init__(self, settings: InfluxReading) -> None:
        self._influx = InfluxQL(settings)
        self._fields: list[str] | None = None

    def hosts(self, since: int, until: int) -> Sequence[str]:  # noqa: ARG002
        """By the tag host. Days without points are passed over later."""
        series = self._influx.query(f'SHOW TAG VALUES FROM "{_MEASUREMENT}" WITH KEY = "host"')
        return sorted(str(row[1]) for s in series for row in s.rows)

    def rows(self, host: str, since: int, until: int) -> Iterable[Row]:
        """A row a point."""
        if self._fields is None:
            keys = self._influx.query(f'SHOW FIELD KEYS FROM "{_MEASUREMENT}"')
            there = {str(row[0]) for s in keys for row in s.rows}
            self._fields = [name for name in _FIELDS if name in there]
        if not self._fields:
            return
        columns = ", ".join(f'"{name}"' for name in self._fields)
        for series in self._influx.query(
            f'SELECT {columns} FROM "{_MEASUREMENT}" WHERE "host" = {quoted(host)}'
            f" AND time >= {since}s AND time < {until}s"
            ' GROUP BY "uuid", "index", "name"'
        ):
            for record in series.records():
                time = record.pop("time") / 1e9
                yield {
                    "time": time,
                    "host": host,
                    "gpu_uuid": series.tags.get("uuid", ""),
                    "index": series.tags.get("index", ""),
                    "gpu_model": series.tags.get("name", ""),
                    **record,
                }


__all__ = ["Telegraf"]
