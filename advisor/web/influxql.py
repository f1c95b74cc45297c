"""InfluxQL over HTTP, with bounds: what the page asks of InfluxDB 1.x, 2.x (DBRP) and 3.x.

https://docs.influxdata.com/influxdb/v1/tools/api/#query-http-endpoint
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import urllib3

from advisor.web.picture import SourceError

_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Address:
    """An InfluxDB: `database` (a bucket, where a DBRP mapping names it) holds the 10-second
    windows, `database_5m` the 5-minute ones where they are kept apart."""

    url: str
    database: str
    database_5m: str | None = None
    token: str | None = None
    timeout_seconds: float = 20.0

    def holding(self, tier: int) -> str:
        """The database of a tier."""
        return self.database_5m if tier == 300 and self.database_5m else self.database


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer."""

    name: str
    tags: Mapping[str, str]
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def records(self) -> list[dict[str, Any]]:
        """The rows as column to value, without cells that hold nothing."""
        return [
            {name: cell for name, cell in zip(self.columns, row, strict=True) if cell is not None}
            for row in self.rows
        ]


class Client:
    """Asks one InfluxDB. Safe to use from several threads."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._pool = urllib3.PoolManager(
            num_pools=1, maxsize=4, timeout=address.timeout_seconds, retries=False
        )

    def query(self, statements: str, tier: int = 10) -> list[list[Series]]:
        """The series of each statement, times in whole seconds. Raises SourceError."""
        url = self.address.url.rstrip("/") + "/query"
        headers = {"Accept": "application/json"}
        if self.address.token:
            headers["Authorization"] = f"Token {self.address.token}"
        try:
            answer = self._pool.request(
                "GET",
                url,
                fields={"q": statements, "db": self.address.holding(tier), "epoch": "s"},
                headers=headers,
                preload_content=False,
                redirect=False,
            )
            try:
                body = answer.read(_MOST_BYTES + 1, decode_content=True)
            finally:
                answer.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise SourceError(f"{url} cannot be read ({type(error).__name__})") from None
        if len(body) > _MOST_BYTES:
            raise SourceError(f"{url} answers more than {_MOST_BYTES // 2**20} MiB")
        if answer.status != 200:
            raise SourceError(f"{url} answers {answer.status}: {_words(body)}")
        try:
            return [_series(result, url) for result in json.loads(body)["results"]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SourceError(f"{url} answers no InfluxQL result ({error})") from None


def _series(result: Mapping[str, Any], url: str) -> list[Series]:
    if "error" in result:
        raise SourceError(f"{url}: {_words(str(result['error']).encode())}")
    return [
        Series(found["name"], found.get("tags", {}), found["columns"], found.get("values", []))
        for found in result.get("series", [])
    ]


def _words(body: bytes) -> str:
    return " ".join(body[:300].decode(errors="replace").split())


def text(value: str) -> str:
    """A string literal of InfluxQL."""
    clean = re.sub(r"[\x00-\x1f\x7f]", " ", value)
    return "'" + clean.replace("\\", "\\\\").replace("'", "\\'") + "'"


def names(fields: Sequence[str]) -> str:
    """Identifiers, quoted."""
    return ", ".join(f'"{name}"' for name in fields)
