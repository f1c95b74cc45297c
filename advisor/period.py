"""Periods: how they are written, and which one a command tells or sizes."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from advisor.assessment import Period
from advisor.history import History

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")


def parse_duration(text: str) -> float:
    """Seconds of `7d`, `12h`, `90m`, `2w`, `30s`. Raises ValueError, with what is expected."""
    match = _DURATION.fullmatch(text.strip().lower())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if seconds <= 0:
        raise ValueError(f"{text!r} is no period: write a number and s, m, h, d or w, as in 7d")
    return seconds


def parse_instant(text: str) -> float:
    """Unix time of an epoch or of ISO 8601; without a zone it is UTC. Raises ValueError."""
    text = text.strip()
    try:
        instant = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(
                f"{text!r} is no time: write 2026-03-01T12:00:00Z or seconds since 1970"
            ) from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    if not math.isfinite(instant):
        raise ValueError(f"{text!r} is no time")
    return instant


def period(history: History, host: str, length: float, until: float | None = None) -> Period | None:
    """The last `length` seconds of a host before `until`.

    The end is the host's newest window where `until` is None, so that old recordings are judged
    too. The period begins at the host's first window if that is later. None where the host has no
    window before the end.
    """
    span = history.span(host)
    if span is None:
        return None
    first, newest = span
    end = newest if until is None else math.ceil(until)
    if end <= first:
        return None
    return Period(max(first, math.floor(end - length)), end)
