"""The part of the check-up that asks InfluxDB: address, token, buckets, and how long they keep."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import urllib3

from agent.config.settings import InfluxSettings
from agent.doctor.check import Check, Mark
from agent.shipping.delivery import Accepted, Rejected
from telemetry.bounded import ask

_MOST_BYTES = 4 << 20
_DAY = 86_400.0
_LOOK_BACK_DAYS = 28.0
"""What the advisor's findings rest on by default."""


def check_influx(settings: InfluxSettings) -> Iterator[Check]:
    """A line a bucket; writes nothing."""
    if settings.url is None:
        yield Check(
            "influxdb", Mark.ABSENT, "windows stay on this machine: [influx] url is not set"
        )
        return
    try:
        from agent.shipping.influx import Influx
    except ImportError as error:
        remedy = "install talla with its dependencies"
        yield Check("influxdb", Mark.PROBLEM, f"influxdb-client: {error}", remedy)
        return
    influx = Influx(settings)
    try:
        for bucket in dict.fromkeys((influx.bucket(10), influx.bucket(300))):
            # A comment is no point: it is refused, or it leaves nothing behind.
            answer = influx.send(bucket, [b"# talla-agent doctor"])
            if not isinstance(answer, Accepted | Rejected):
                yield Check("influxdb", Mark.PROBLEM, answer.reason)
                continue
            text = f"{settings.url} takes writes to bucket {bucket!r}"
            kept = kept_seconds(settings, bucket)
            if kept is None:
                yield Check("influxdb", Mark.OK, f"{text}; how long it keeps them is not told")
            elif bucket == influx.bucket(300) and 0 < kept < _LOOK_BACK_DAYS * _DAY:
                yield Check(
                    "influxdb",
                    Mark.PROBLEM,
                    f"{text}, and keeps them for {kept / _DAY:g} days",
                    f"findings look {_LOOK_BACK_DAYS:g} days back: let the bucket of the 5-minute"
                    " windows keep them longer, or name another with [influx] bucket_5m",
                )
            else:
                how = f"for {kept / _DAY:g} days" if kept else "for ever"
                yield Check("influxdb", Mark.OK, f"{text}, and keeps them {how}")
    finally:
        influx.close()


def kept_seconds(settings: InfluxSettings, bucket: str) -> float | None:
    """How long a bucket keeps points (0: for ever); None where the server or the token's scope
    does not let us know, which writing does not need.

    https://docs.influxdata.com/influxdb/v2/api/#operation/GetBuckets
    """
    from agent.shipping.influx import read_token
    from agent.shipping.influx_path import NotReady

    try:
        token = read_token(settings, os.environ)
    except NotReady:
        return None
    base = str(settings.url).rstrip("/")
    database, _, policy = bucket.partition("/")
    if settings.api == "v1":
        headers = urllib3.make_headers(basic_auth=token) if token else {}
        query = {"q": f'SHOW RETENTION POLICIES ON "{database}"', "epoch": "s"}
        document = _asked(settings, f"{base}/query?{urlencode(query)}", headers)
    else:
        headers = {"Authorization": f"Token {token}"}
        query = {"name": bucket, "org": settings.org}
        document = _asked(settings, f"{base}/api/v2/buckets?{urlencode(query)}", headers)
    try:
        if settings.api == "v1":
            for row in document["results"][0]["series"][0]["values"]:
                if row[0] == policy or (not policy and row[4]):
                    return _go_duration(row[1])
            return None
        rules = document["buckets"][0]["retentionRules"]
        return float(rules[0]["everySeconds"]) if rules else 0.0
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def _asked(settings: InfluxSettings, url: str, headers: dict[str, str]) -> Any:
    """The JSON object of an answer, None where there is none."""
    try:
        pool = urllib3.PoolManager(ca_certs=settings.ca_file)
        status, body = ask(
            pool,
            "GET",
            url,
            headers=headers,
            seconds=settings.timeout_seconds,
            most_bytes=_MOST_BYTES,
        )
        document = json.loads(body) if status == 200 else None
    except (urllib3.exceptions.HTTPError, OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _go_duration(text: str) -> float:
    """Seconds of 168h0m0s."""
    hours, _, rest = text.partition("h")
    minutes, _, seconds = rest.partition("m")
    if not rest:
        return 0.0
    return float(hours) * 3600 + float(minutes or 0) * 60 + float(seconds.rstrip("s") or 0)


__all__ = ["check_influx", "kept_seconds"]
