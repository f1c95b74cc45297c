"""Where and when rules do not apply: by host, unit, user, kind of workload, and calendar."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from fnmatch import fnmatchcase
from typing import Any
from zoneinfo import ZoneInfo

from agent.errors import ConfigError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)")
_LISTS = ("rules", "hosts", "units", "users", "workloads", "days")


@dataclass(frozen=True, slots=True)
class Job:
    """Whose work is on a subject, as far as it is known."""

    owner: str | None = None
    owner_kind: str | None = None
    user: str | None = None
    workload: str | None = None
    tool: str | None = None
    model: str | None = None
    pid: str | None = None


@dataclass(frozen=True, slots=True)
class Exemption:
    """Patterns (`*` stands for anything); an empty list matches everything.

    `units` and `users` match if any job on the subject is theirs. `hours` (minutes of the day,
    from and until; it may pass midnight) and `days` are read in `timezone`; `until` is the last
    day on which it holds.
    """

    rules: tuple[str, ...]
    reason: str
    hosts: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    hours: tuple[int, int] | None = None
    timezone: tzinfo = UTC
    until: date | None = None

    def covers(self, rule: str, host: str, jobs: Iterable[Job], time: float) -> bool:
        """Whether the rule does not apply to this subject at this time (Unix seconds)."""
        if not _matches(self.rules, (rule,)) or not _matches(self.hosts, (host,)):
            return False
        jobs = tuple(jobs)
        units = (j.owner for j in jobs if j.owner_kind != "user")
        users = (n for j in jobs for n in (j.user, j.owner if j.owner_kind == "user" else None))
        return (
            _matches(self.units, units)
            and _matches(self.users, users)
            and _matches(self.workloads, (j.workload for j in jobs))
            and self._now(datetime.fromtimestamp(time, self.timezone))
        )

    def _now(self, local: datetime) -> bool:
        if self.until is not None and local.date() > self.until:
            return False
        minute = local.hour * 60 + local.minute
        day = local.weekday()
        if self.hours is not None:
            begin, end = self.hours
            if begin >= end and minute < end:
                day -= 1  # the night belongs to the day on which it began
            inside = begin <= minute < end if begin < end else minute >= begin or minute < end
            if not inside:
                return False
        return not self.days or DAYS[day % 7] in self.days


def read_exemption(table: Mapping[str, Any], file: str) -> Exemption:
    """An exemption from its TOML table. Raises ConfigError naming file and key."""

    def fail(key: str, words: str) -> ConfigError:
        return ConfigError(f"{file}: exemption: {key}: {words}")

    values: dict[str, Any] = {"timezone": ZoneInfo("UTC")}
    for key, value in table.items():
        if key in _LISTS:
            if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
                raise fail(key, "expected a list of texts")
            values[key] = tuple(value)
        elif key == "reason":
            values[key] = str(value)
        elif key == "hours":
            values[key] = _hours(value, fail)
        elif key == "timezone":
            try:
                values[key] = ZoneInfo(value)
            except (OSError, ValueError, TypeError):  # ZoneInfoNotFoundError is a KeyError
                raise fail(key, f"no time zone is called {value!r}") from None
            except KeyError:
                raise fail(key, f"no time zone is called {value!r}") from None
        elif key == "until":
            if not isinstance(value, date):
                raise fail(key, "expected a date such as 2026-12-31, without quotes")
            values[key] = value.date() if isinstance(value, datetime) else value
        else:
            raise fail(
                key,
                f"no such key; expected {', '.join((*_LISTS, 'hours'))}, timezone, until, reason",
            )
    for key in ("rules", "reason"):
        if not values.get(key):
            raise fail(key, "is missing")
    for day in values.get("days", ()):
        if day not in DAYS:
            raise fail("days", f"expected {', '.join(DAYS)}, found {day!r}")
    return Exemption(**values)


def _hours(value: Any, fail: Any) -> tuple[int, int]:
    found = _HOURS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise fail("hours", "expected such as 22:00-06:00")
    begin_hour, begin, end_hour, end = map(int, found.groups())
    return begin_hour * 60 + begin, end_hour * 60 + end


def _matches(patterns: tuple[str, ...], names: Iterable[str | None]) -> bool:
    if not patterns:
        return True
    return any(n is not None and fnmatchcase(n, p) for n in names for p in patterns)


__all__ = ["DAYS", "Exemption", "Job", "read_exemption"]
