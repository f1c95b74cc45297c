"""InfluxQL over HTTP: the widest read interface of InfluxDB 1.x, 2.x (by a DBRP mapping) and 3.x.

`GET /query`, https://docs.influxdata.com/influxdb/v2/api-guide/influxdb-1x/query/
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from advisor.errors import AdvisorError
from advisor.service.config import InfluxReading
from telemetry.bounded import Endless, ask

_MOST_BYTES = 128 << 20
"""A day of a host with 16 GPUs takes about 4 MiB."""


class NoAnswer(AdvisorError):
    """InfluxDB did not answer, or refused; the message is one line without secrets."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer; times are nanoseconds."""

    name: str
    tags: Mapping[str, str]
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def records(self) -> list[dict[str, Any]]:
        """The rows as column to value, cells that hold nothing left out."""
        return [
            {n: cell for n, cell in zip(self.columns, row, strict=True) if cell is not None}
            for row in self.rows
        ]


class InfluxQL:
    """Asks one server; the token is read anew at each query, so that it may be replaced."""

    def __init__(self, settings: InfluxReading, database: str | None = None) -> None:
        self._settings = settings
        self._database = database or settings.database
        self._pool = urllib3.PoolManager(ca_certs=settings.ca_file or None)

    def close(self) -> None:
        """Lets go of the connections."""
        self._pool.clear()

    def query(self, influxql: str) -> list[Series]:
        """The series of a SELECT. Raises NoAnswer."""
        settings = self._settings
        fields = {"q": influxql, "db": self._database, "epoch": "ns"}
        try:
            status, body = ask(
                self._pool,
                "GET",
                f"{settings.url.rstrip('/')}/query",
                fields=fields,
                headers=self._headers(),
                seconds=settings.timeout_seconds,
                most_bytes=_MOST_BYTES,
            )
        except Endless as error:
            raise NoAnswer(f"{settings.url}: {error}") from None
        except urllib3.exceptions.HTTPError as error:
            raise NoAnswer(f"{settings.url}: {type(error).__name__}") from None
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        try:
            words = document.get("error") or document.get("message")
            for result in document.get("results", ()):
                words = words or result.get("error")
            if status == 200 and not words:
                return [
                    Series(s["name"], s.get("tags", {}), s["columns"], s.get("values", []))
                    for result in document["results"]
                    for s in result.get("series", ())
                ]
        except (AttributeError, KeyError, TypeError):  # JSON, but of another form
            words = None
        raise NoAnswer(f"{settings.url}: {status} {words or 'no InfluxQL here'}")

    def _headers(self) -> dict[str, str]:
        if not self._settings.token_file:
            return {}
        path = Path(self._settings.token_file)
        try:
            token = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            words = getattr(error, "strerror", None) or "no UTF-8 text"
            raise NoAnswer(f"{path}: the token cannot be read ({words})") from None
        if ":" in token:
            return dict(urllib3.make_headers(basic_auth=token))
        return {"Authorization": f"Token {token}"}


def quoted(text: str) -> str:
    """A text as InfluxQL's string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


__all__ = ["InfluxQL", "NoAnswer", "Series", "quoted"]
