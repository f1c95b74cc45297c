"""Writes to /write, the path of InfluxDB 1.x, with user and password.

https://docs.influxdata.com/influxdb/v1/tools/api/#write-http-endpoint
"""

from __future__ import annotations

from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import SSLError

from agent.config.settings import InfluxSettings
from agent.shipping.influx_path import MOST_BYTES, Refused
from telemetry.bounded import Bounded


class V1Path:
    """InfluxDB 1.x. A bucket is a database, or a database/retention policy."""

    def __init__(self, url: str, settings: InfluxSettings, token: str) -> None:
        """`token` is `user:password`, or empty where the server asks for none."""
        self._url = f"{url.rstrip('/')}/write"
        self._headers = {"Content-Encoding": "gzip", "Content-Type": "text/plain; charset=utf-8"}
        if token:
            self._headers |= urllib3.make_headers(basic_auth=token)
        self._pool = Bounded(settings.timeout_seconds, MOST_BYTES, ca_certs=settings.ca_file)

    def write(self, bucket: str, packed: bytes) -> None:
        """Posts lines."""
        database, _, policy = bucket.partition("/")
        query = {"db": database, "precision": "ns"} | ({"rp": policy} if policy else {})
        try:
            url = f"{self._url}?{urlencode(query)}"
            answer = self._pool.request("POST", url, body=packed, headers=self._headers)
        except SSLError as error:
            raise Refused(0, str(error), {}) from error
        if answer.status // 100 != 2:
            raise Refused(answer.status, answer.data.decode("utf-8", "replace"), answer.headers)

    def close(self) -> None:
        """Lets go of the connections."""
        self._pool.clear()


__all__ = ["V1Path"]
