"""Windows, events and inventories as InfluxDB line protocol.

Times are nanoseconds, the protocol's own default, so that a line stands for itself wherever it is
replayed. A line says the same each time it is made: sending it twice leaves one point.

Every field is a float but `*_count` and `sequence` (integers) and texts; types never change.
Syntax: https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from telemetry.event import Event
from telemetry.metrics import family
from telemetry.window import Key, Row, Window

TIER_TAGS = {10: "10s", 300: "5m"}
"""The values of the tag `window`."""

WINDOW_SECONDS = "window_seconds"
"""The field that says how long the window really was."""

_TEXT_LIMIT = 32_000  # InfluxDB refuses a text of 64 KiB or more
_TAG_LIMIT = 1_000
_NANOSECONDS = 1_000_000_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
_TAG_SPECIAL = re.compile(r"([,= ])")


def window_lines(
    window: Window, texts: Mapping[Key, Mapping[str, str]] | None = None
) -> list[bytes]:
    """One line for each subject of a window; `texts` are told beside the row's own."""
    more = texts or {}
    return [
        row_line(window, key, row, more.get(key, {}))
        for key, row in window.rows.items()
        if row.values or row.texts
    ]


def row_line(window: Window, key: Key, row: Row, texts: Mapping[str, str]) -> bytes:
    """One subject of a window."""
    labels, strings = _texts(key[0])
    said = {**row.texts, **texts} if texts else row.texts
    fields = [f"{WINDOW_SECONDS}={float(window.seconds)!r}"]
    if row.values:
        fields += _numbers(row.values)
    if said:
        fields += _strings((name, said[name]) for name in strings if name in said)
    head = _row_head(
        window.host,
        window.tier,
        key,
        tuple((name, said[name]) for name in labels if name in said),
    )
    return f"{head} {','.join(fields)} {window.start * _NANOSECONDS}".encode()


@cache
def _texts(measurement: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A family's labels, which are tags, and its other texts."""
    declared = family(measurement)
    return declared.labels, tuple(n for n in declared.texts if n not in declared.labels)


@lru_cache(maxsize=1024)
def _row_head(host: str, tier: int, key: Key, labels: tuple[tuple[str, str], ...]) -> str:
    """Measurement and tags, which are the same in every window of a subject."""
    tags = {"host": host, "window": TIER_TAGS.get(tier, f"{tier}s")}
    tags.update(zip(family(key[0]).tags, key[1:], strict=True))
    tags.update(labels)
    return _head(key[0], tags)


def event_line(event: Event) -> bytes:
    """One event. Its sequence is in the last digits of its time, so that no two share a point."""
    sequence = event.sequence or 0
    tags = {"host": event.host, "kind": event.kind}
    if event.rule is not None:
        tags["rule"] = event.rule
    if event.gpu_uuid is not None:
        tags["gpu_uuid"] = event.gpu_uuid
    numbers = {} if event.raised is None else {"raised": float(event.raised)}
    strings = {"text": event.text, "severity": event.severity.value}
    if event.attributes:
        strings["attributes"] = json.dumps(dict(event.attributes), ensure_ascii=False)
    fields = [f"sequence={sequence}i", *_numbers(numbers), *_strings(strings.items())]
    microseconds = math.floor(event.time * 1e6)
    return _line("event", tags, fields, microseconds * 1000 + sequence % 1000)


def inventory_line(time: float, host: str, document: Mapping[str, Any]) -> bytes:
    """What a server is, as one JSON text."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode("utf-8", "backslashreplace")) > _TEXT_LIMIT:  # no half JSON
        text = json.dumps({"host": host, "error": "the inventory is too long for one field"})
    return _line(
        "inventory", {"host": host}, _strings([("document", text)]), math.floor(time) * _NANOSECONDS
    )


def _line(measurement: str, tags: Mapping[str, str], fields: Iterable[str], time: int) -> bytes:
    return f"{_head(measurement, tags)} {','.join(fields)} {time}".encode()


def _head(measurement: str, tags: Mapping[str, str]) -> str:
    named = sorted((n, t) for n, v in tags.items() if (t := tag_value(v)))
    return ",".join([measurement, *(f"{name}={text}" for name, text in named)])


def _numbers(values: Mapping[str, float]) -> Sequence[str]:
    """The fields of a row, those of them that are numbers; none where there is none."""
    if not math.isfinite(sum(values.values())):  # what is not finite is none of the protocol's
        values = {n: v for n, v in values.items() if math.isfinite(v)}
    return [_form(tuple(values)) % tuple(values.values())] if values else []


@lru_cache(maxsize=256)
def _form(names: tuple[str, ...]) -> str:
    """How the numbers of a row are written: most windows of a subject have the same ones."""
    return ",".join(f"{name}={'%di' if name.endswith('_count') else '%r'}" for name in names)


def _strings(values: Iterable[tuple[str, str]]) -> Iterable[str]:
    return [f'{name}="{_quoted(value)}"' for name, value in values]


@lru_cache(maxsize=2048)
def _quoted(value: str) -> str:
    return _clean(value)[:_TEXT_LIMIT].replace("\\", "\\\\").replace('"', '\\"')


def tag_value(text: str) -> str:
    """A tag's value, escaped; empty where nothing can be said, which the protocol has no way of."""
    # A backslash before the separator that follows would swallow it: none may be the last.
    clean = _clean(text)[:_TAG_LIMIT].strip(" ").rstrip("\\")
    return _TAG_SPECIAL.sub(r"\\\1", clean)


def _clean(text: str) -> str:
    """Text without line breaks and control characters, and with odd bytes made visible."""
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return _CONTROL.sub(" ", text)


__all__ = [
    "TIER_TAGS",
    "WINDOW_SECONDS",
    "event_line",
    "inventory_line",
    "row_line",
    "tag_value",
    "window_lines",
]
