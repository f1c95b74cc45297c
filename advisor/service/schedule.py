"""When something is due by a calendar, from a stamp of when it was last done.

A time that was missed is made up once, however many were missed: what counts is the newest one.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from advisor.service.config import DAYS


def newest_due(now: float, hour: int, timezone: str, day: str | None = None) -> float:
    """The newest scheduled time that is not after `now` (Unix seconds).

    Daily at `hour` of a time zone, or weekly on `day`. Where clocks go forward over the hour, it
    is the moment after.
    """
    zone = ZoneInfo(timezone)
    local = datetime.fromtimestamp(now, zone)
    at = local.replace(hour=hour, minute=0, second=0, microsecond=0, fold=0)
    if day is not None:
        at -= timedelta(days=(local.weekday() - DAYS.index(day)) % 7)
    step = timedelta(days=1 if day is None else 7)
    while at.timestamp() > now:
        at -= step
    return at.timestamp()


__all__ = ["newest_due"]
