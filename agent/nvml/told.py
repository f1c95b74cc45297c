"""What the child told of each GPU, which it says again only where it has changed."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from agent.nvml.types import GpuReading
from agent.nvml.xids import Xids

log = logging.getLogger(__name__)


class Told:
    """The rows of all GPUs of one child, by UUID, with the keys that `agent.nvml.child` gives.

    Raises LookupError where a child speaks of a GPU that it has not told of.
    """

    def __init__(self, xids: Xids) -> None:
        self._xids = xids
        self._rows: dict[str, dict[str, Any]] = {}
        self._no_codes: dict[str, list[int]] = {}
        """What a tick without an XID has: an empty list for each GPU whose XIDs are told."""

    def begin_anew(self) -> None:
        """Another child is about to tell everything."""
        self._rows, self._no_codes = {}, {}

    def codes(self, told: Mapping[str, list[int]] | None) -> Mapping[str, list[int]]:
        """The XIDs of this tick by UUID; `told` is None where there are none."""
        if told is None:
            return self._no_codes
        self._no_codes = {uuid: [] for uuid in told}
        return told

    def take(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """All that is known of the GPU, with what a row says anew."""
        uuid: str = row["uuid"]
        told = self._rows.setdefault(uuid, {})
        for key, value in row.items():
            for metric in value if key == "unavailable" else ():
                if metric not in told.get(key, {}):
                    log.info("GPU %s: %s is unavailable: %s", uuid, metric, value[metric])
            told[key] = value
        return told

    def reading(self, uuid: str, doubles: Iterator[float], codes: list[int] | None) -> GpuReading:
        """The readings of a tick, with what is known of the GPU."""
        told = self._rows[uuid]
        names, texts = told["names"], told.get("texts", {})
        values = dict(zip(names, islice(doubles, len(names)), strict=True))
        if codes is not None:
            values.update(self._xids.counts(codes))
            if codes:
                texts = {**texts, "xid": "; ".join(self._xids[c].text for c in codes)}
        absent = told.get("unavailable", {})
        return GpuReading(uuid, told["index"], told.get("name"), values, texts, absent)

    def unavailable_processes(self) -> dict[str, dict[str, str]]:
        """By UUID, what of the processes the driver does not tell, and why."""
        found: dict[str, dict[str, str]] = {}
        for uuid, row in self._rows.items():
            parts = row.get("instances_unavailable", {})
            found |= {uuid: row.get("processes_unavailable", {})}
            found |= {f"{uuid}/{part}": reasons for part, reasons in parts.items()}
        return {uuid: dict(reasons) for uuid, reasons in found.items() if reasons}

    def dropped_total(self) -> dict[str, int]:
        """Values that no card can have, and were dropped, by metric."""
        total: dict[str, int] = {}
        for row in self._rows.values():
            for metric, number in row.get("dropped_total", {}).items():
                total[metric] = total.get(metric, 0) + number
        return total

    def errors_total(self) -> int:
        """Readings that failed and were tried again."""
        return sum(row.get("errors_total", 0) for row in self._rows.values())
