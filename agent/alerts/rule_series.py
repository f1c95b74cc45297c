"""The test series beside a rule, after vmalert-tool's notation.

metric = "0*30 0.4*120 _*6 0+6*10"    levels, each with how many windows; `_` no reading;
                                       a step after + is added from window to window
state = "busy*6 idle_held*240 idle_held/standby*20"     the same with states and their notes
expect = ["raise 31m", "clear 1h2m10s"]    what happens, at which time after the beginning
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from telemetry.state import Note, State, WindowState

_PART = re.compile(r"(?P<what>[^*\s]+?)(?:\*(?P<count>[1-9]\d*))?")
_LEVEL = re.compile(r"(?P<start>-?[0-9.]+(?:e[0-9]+)?)(?P<step>[+-][0-9.]+)?")
_TIME = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")

Cell = float | WindowState | None
"""What one window shows: a level, a state, or nothing."""


class SeriesError(ValueError):
    """A series that cannot be read; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Series:
    """`expect` holds (what, seconds); `source` is the incident or recording, if it is from one."""

    name: str
    cells: tuple[Cell, ...]
    expect: tuple[tuple[str, int], ...]
    source: str | None = None


def read_series(table: Any) -> Series:
    """A series from its TOML table. Raises SeriesError."""
    if not isinstance(table, Mapping):
        raise SeriesError("expected [[rule.series]]")
    odd = set(table) - {"name", "metric", "state", "expect", "source"}
    if odd or not {"name", "expect"} <= set(table) or ("metric" in table) == ("state" in table):
        raise SeriesError("expected name, expect, and either metric or state (source may be added)")
    cells = tuple(
        _levels(str(table["metric"])) if "metric" in table else _states(str(table["state"]))
    )
    expect = tuple(_expectation(str(text)) for text in table["expect"])
    return Series(str(table["name"]), cells, expect, table.get("source"))


def _parts(text: str) -> Iterator[tuple[str, int]]:
    for part in text.split():
        found = _PART.fullmatch(part)
        if found is None:
            raise SeriesError(f"expected LEVEL*COUNT, found {part!r}")
        yield found["what"], int(found["count"] or 1)


def _levels(text: str) -> Iterator[Cell]:
    for what, count in _parts(text):
        if what == "_":
            yield from [None] * count
            continue
        found = _LEVEL.fullmatch(what)
        if found is None:
            raise SeriesError(f"expected a level such as 0.9, 0+6 or _, found {what!r}")
        start, step = float(found["start"]), float(found["step"] or 0)
        yield from (start + step * i for i in range(count))


def _states(text: str) -> Iterator[Cell]:
    for what, count in _parts(text):
        if what == "_":
            yield from [None] * count
            continue
        state, _, note = what.partition("/")
        try:
            cell = WindowState(State(state), 0.9, note=Note(note) if note else None)
        except ValueError as error:
            raise SeriesError(str(error)) from None
        yield from [cell] * count


def _expectation(text: str) -> tuple[str, int]:
    what, _, time = text.partition(" ")
    found = _TIME.fullmatch(time)
    if what not in ("raise", "clear") or not time or found is None:
        raise SeriesError(f"expected such as 'raise 31m' or 'clear 1h2m10s', found {text!r}")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return what, ((days * 24 + hours) * 60 + minutes) * 60 + seconds


__all__ = ["Cell", "Series", "SeriesError", "read_series"]
