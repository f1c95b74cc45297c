"""Imports history from a server's series, host by host and day by day.

A day is fetched, written as a CSV of columns that the import of files knows, and imported like any
file: memory is bounded, and a run that was stopped goes on after the last whole day.
"""

from __future__ import annotations

import csv
import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from advisor.errors import AdvisorError
from advisor.importers.run import Request, Summary, import_logs
from telemetry.store import StoreReader
from telemetry.store_lock import check_folder

DAY = 86_400

Row = Mapping[str, str | float]
"""One GPU at one time: `time`, `gpu_uuid` and the source's own field names."""


class Source(Protocol):
    """A server that holds series of GPUs."""

    def hosts(self, since: int, until: int) -> Sequence[str]:
        """The hosts that have any in a period. Raises AdvisorError."""

    def rows(self, host: str, since: int, until: int) -> Iterable[Row]:
        """What it has of one host in [since, until). Raises AdvisorError."""


@dataclass(slots=True)
class Imported:
    """What was imported of all hosts: days that had data, days that were there already."""

    days: int = 0
    days_before: int = 0
    summaries: list[Summary] = field(default_factory=list)


def import_remote(
    source: Source,
    request: Request,
    since: float,
    until: float,
    progress: Callable[[str, int, int], None] | None = None,
) -> Imported:
    """Raises AdvisorError or StoreError; what was imported before stays.

    `progress` is told the host and how many of how many days are done.
    """
    first, end = math.floor(since) // DAY * DAY, math.ceil(until)
    hosts = source.hosts(first, end)
    if request.host is not None:
        hosts = [h for h in hosts if h == request.host]
    if not hosts:
        raise AdvisorError("the server has no series of GPUs in this period: nothing was imported")
    done = Imported()
    days = range(first, end, DAY)
    with tempfile.TemporaryDirectory(prefix="talla-import-") as folder:
        for place, host in enumerate(hosts):
            known = _known(request.store, host)
            for number, day in enumerate(days, 1):
                if progress is not None:
                    progress(host, place * len(days) + number, len(hosts) * len(days))
                if known is not None and known[0] <= day + DAY and day + DAY <= known[1]:
                    done.days_before += 1
                    continue
                file = Path(folder) / "day.csv"
                rows = source.rows(host, day, min(day + DAY, end))
                if not _write(file, rows):
                    continue
                one = replace(request, files=(file,), host=host, origin=day)
                done.summaries.append(import_logs(one))
                done.days += 1
    return done


def _known(store: Path, host: str) -> tuple[int, int] | None:
    check_folder(store)
    if not store.exists():
        return None
    with StoreReader(store) as reader:
        return reader.span(host, 300)


def _write(file: Path, rows: Iterable[Row]) -> int:
    """The rows as CSV; how many."""
    kept = list(rows)
    titles = list(dict.fromkeys(title for row in kept for title in row))
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, titles)
        writer.writeheader()
        writer.writerows(kept)
    return len(kept)


__all__ = ["DAY", "Imported", "Row", "Source", "import_remote"]
