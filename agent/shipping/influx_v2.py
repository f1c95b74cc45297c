"""Writes to /api/v2/write through influxdb-client, the only module that imports it.

It is imported only where shipping is configured: it costs some 30 MiB. The client's own batching
mode loses data without a word, so it is used in synchronous mode, with lines made before.
"""

from __future__ import annotations

from agent.config.settings import InfluxSettings
from agent.hidden import hidden
from agent.shipping.influx_path import MOST_BYTES, Refused
from telemetry.bounded import Bounded

with hidden("numpy"):  # its Point would load it, and the agent has no use for either
    from influxdb_client.client.influxdb_client import InfluxDBClient
    from influxdb_client.client.write_api import SYNCHRONOUS
    from influxdb_client.rest import ApiException


class V2Path:
    """InfluxDB 1.8, 2.x and 3.x, and VictoriaMetrics."""

    def __init__(self, url: str, settings: InfluxSettings, token: str) -> None:
        self._org = settings.org
        self._client = InfluxDBClient(
            url=url,
            token=token,
            org=settings.org,
        )
        # Its own way to pack is the slowest, and it reads whatever is answered to the end.
        api = self._client.api_client
        api.set_default_header("Content-Encoding", "gzip")  # type: ignore[no-untyped-call]
        pool = Bounded(settings.timeout_seconds, MOST_BYTES, ca_certs=settings.ca_file)
        api.rest_client.pool_manager = pool  # type: ignore[assignment]

    def write(self, bucket: str, packed: bytes) -> None:
        """Posts lines."""
        try:
            with self._client.write_api(write_options=SYNCHRONOUS) as api:
                api.write(bucket, self._org, packed, write_precision="ns")
        except ApiException as error:
            body = str(error.body or error.reason or "")
            raise Refused(int(error.status or 0), body, error.headers or {}) from error

    def close(self) -> None:
        """Lets go of the connections."""
        self._client.close()  # type: ignore[no-untyped-call]


__all__ = ["V2Path"]
