"""When a job is there, and when it works: always, never, or by day, weekday and hour (UTC).

    alive = "always"
    works = { hours = "08:00-20:00", weekdays = "mon-fri", from_day = 0, to_day = 6 }

Days count from the first day of the history. Hours are multiples of five minutes, so that a
window of the history lies wholly inside or outside; a span may pass midnight.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DAY = 86400
STEP = 300
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)")
_EXPECTED = (
    '"always", "never", or a table with hours = "HH:MM-HH:MM" (multiples of five minutes), '
    'weekdays = "mon-fri" or "sat,sun", from_day, to_day (whole numbers)'
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """`opens` and `closes` are seconds of the day; a span that closes first passes midnight.

    `weekdays` (0 is Monday) and the days from `from_day` to before `to_day` are those on which a
    span opens.
    """

    never: bool = False
    opens: int = 0
    closes: int = DAY
    weekdays: frozenset[int] = frozenset(range(7))
    from_day: int = 0
    to_day: int | None = None

    def run(self, time: int, origin: int) -> int | None:
        """When the span that holds `time` opened; None outside of every span.

        Spans without a break are one, which opened on its first day. `origin` is the time at
        which the history begins.
        """
        if self.never:
            return None
        day = time // DAY
        second = time % DAY
        if self.opens == 0 and self.closes == DAY:
            if not self._on(day, origin):
                return None
            while day > origin // DAY and self._on(day - 1, origin):
                day -= 1
            return day * DAY
        if self.opens < self.closes:
            inside = self.opens <= second < self.closes and self._on(day, origin)
            return day * DAY + self.opens if inside else None
        if second >= self.opens and self._on(day, origin):
            return day * DAY + self.opens
        if second < self.closes and self._on(day - 1, origin):
            return (day - 1) * DAY + self.opens
        return None

    def _on(self, day: int, origin: int) -> bool:
        number = day - origin // DAY
        # 1 January 1970 was a Thursday. What opened before the history began counts as day 0.
        return (
            (day + 3) % 7 in self.weekdays
            and max(0, number) >= self.from_day
            and (self.to_day is None or number < self.to_day)
        )


def parse_schedule(value: Any) -> Schedule:
    """A schedule from its TOML value. Raises ValueError that says what is expected."""
    if value == "always":
        return Schedule()
    if value == "never":
        return Schedule(never=True)
    if not isinstance(value, dict) or not value:
        raise ValueError(_EXPECTED)
    if set(value) - {"hours", "weekdays", "from_day", "to_day"}:
        raise ValueError(_EXPECTED)
    opens, closes = _hours(value.get("hours", "00:00-24:00"))
    return Schedule(
        opens=opens,
        closes=closes,
        weekdays=_weekdays(value.get("weekdays", "mon-sun")),
        from_day=_day(value, "from_day") or 0,
        to_day=_day(value, "to_day"),
    )


def _hours(text: Any) -> tuple[int, int]:
    match = _HOURS.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(_EXPECTED)
    opens, closes = (int(match[i]) * 3600 + int(match[i + 1]) * 60 for i in (1, 3))
    if opens % STEP or closes % STEP or opens >= DAY or closes > DAY or opens == closes:
        raise ValueError(_EXPECTED)
    return opens, closes


def _weekdays(text: Any) -> frozenset[int]:
    if not isinstance(text, str):
        raise ValueError(_EXPECTED)
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first not in _WEEKDAYS or (last and last not in _WEEKDAYS):
            raise ValueError(_EXPECTED)
        begin, end = _WEEKDAYS.index(first), _WEEKDAYS.index(last or first)
        days.update((begin + i) % 7 for i in range((end - begin) % 7 + 1))
    return frozenset(days)


def _day(value: Mapping[str, Any], key: str) -> int | None:
    number = value.get(key)
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        raise ValueError(_EXPECTED)
    return number
