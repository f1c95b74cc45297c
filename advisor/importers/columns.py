"""What the columns of a log are: Talla's own names, and those of `columns.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import Any

from telemetry.metrics import (
    COVERED_SECONDS,
    DISK,
    ENGINE,
    GPU,
    HOST,
    MOUNT,
    NIC,
    Family,
    Statistic,
)

_OWN: tuple[tuple[str, Family], ...] = (
    ("host_", HOST),
    ("disk_", DISK),
    ("mount_", MOUNT),
    ("nic_", NIC),
    ("engine_", ENGINE),
    ("", GPU),
)
_TAG_COLUMNS = {"mount": "path"}  # the tag of a mount is its path: the column says mount_path
_UNIT_BEHIND = re.compile(r"\s*[\[(]\s*([^\])]*?)\s*[\])]\s*$")
_SEPARATORS = re.compile(r"[\s./-]+")


class Role(StrEnum):
    """What a column is for."""

    TIME = "time"
    HOST = "host"
    UUID = "uuid"
    INDEX = "index"
    BUS_ID = "bus_id"
    MODEL = "model"
    COUNT = "count"
    PROCESSES = "processes"
    SECONDS = "seconds"
    FACT = "fact"
    VALUE = "value"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: what it measures, and the factor to the base unit."""

    dimension: str
    factor: float
    written: tuple[str, ...] = ()


_PLAIN = Unit("plain", 1.0)


@dataclass(frozen=True, slots=True)
class Column:
    """One use of one column of a file.

    `measurement` and `name` are the subject and its field, text or tag; `bits` selects from a
    mask; `rank` orders columns of the same metric; those with `join` are combined instead.
    """

    title: str
    place: int
    role: Role
    measurement: str = ""
    name: str = ""
    unit: Unit = _PLAIN
    bits: int = 0
    rank: int = 0
    join: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a file that are used, and the titles of those that are not."""

    columns: tuple[Column, ...]
    unknown: tuple[str, ...]
    width: int

    def having(self, role: Role) -> Column | None:
        """The first column of a role."""
        return next((c for c in self.columns if c.role is role), None)


def normal(title: str) -> str:
    """A title without case, unit or the difference between separators."""
    return _SEPARATORS.sub("_", _UNIT_BEHIND.sub("", title.strip().lstrip("#").strip()).lower())


class ColumnMap:
    """Finds out what titles mean."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        """`data` is the parsed `columns.toml`."""
        self._units = {
            name: Unit(u["dimension"], u["factor"], tuple(u.get("written", ())))
            for name, u in data["unit"].items()
        }
        self.written = {w: u for u in self._units.values() for w in u.written}
        self._uses: dict[str, list[Column]] = {}
        for rank, entry in enumerate(data["column"]):
            for order, title in enumerate(entry["names"]):
                self._uses.setdefault(normal(title), []).append(
                    self._use(entry, rank * 100 + order)
                )
        self._own = dict(_own_columns())

    @classmethod
    def load(cls) -> ColumnMap:
        """The map that Talla ships."""
        text = resources.files("advisor.importers").joinpath("columns.toml").read_text("utf-8")
        return cls(tomllib.loads(text))

    def _use(self, entry: Mapping[str, Any], rank: int) -> Column:
        if "role" in entry:
            return Column("", 0, Role(entry["role"]), rank=rank)
        if "fact" in entry:
            return Column("", 0, Role.FACT, name=entry["fact"], rank=rank)
        return Column(
            "",
            0,
            Role.VALUE,
            "gpu",
            entry["metric"],
            self._units[entry["unit"]] if "unit" in entry else _PLAIN,
            entry.get("bits", 0),
            rank,
            entry.get("join", False),
        )

    def knows(self, title: str) -> bool:
        """Whether a title means something here."""
        name = normal(title)
        return name in self._own or name in self._uses

    def layout(self, titles: Iterable[str]) -> Layout:
        """What the columns with these titles are."""
        found: list[Column] = []
        unknown: list[str] = []
        place = -1
        for place, raw in enumerate(titles):
            title = raw.strip()
            name = normal(title)
            uses = [self._own[name]] if name in self._own else self._uses.get(name, [])
            if not uses:
                if title:
                    unknown.append(title)
                continue
            told = _UNIT_BEHIND.search(title)
            unit = self.written.get(told[1]) if told else None
            for use in uses:
                same = unit is not None and unit.dimension == use.unit.dimension
                found.append(
                    Column(
                        title,
                        place,
                        use.role,
                        use.measurement,
                        use.name,
                        unit if same and unit is not None else use.unit,
                        use.bits,
                        use.rank,
                        use.join,
                    )
                )
        columns, beaten = _best(found)
        return Layout(columns, (*unknown, *beaten), place + 1)


def _own_columns() -> Iterable[tuple[str, Column]]:
    for prefix, family in _OWN:
        for name, unit in _units(family).items():
            yield prefix + name, Column("", 0, Role.VALUE, family.measurement, name, unit)
        for text in family.texts:
            if (family.measurement, text) not in (("gpu", "gpu_model"),):
                yield prefix + text, Column("", 0, Role.TEXT, family.measurement, text)
        if prefix:
            for tag in family.tags:
                column = prefix + _TAG_COLUMNS.get(tag, tag)
                if family is MOUNT or tag != "mount":
                    yield column, Column("", 0, Role.TEXT, family.measurement, tag)


def _units(family: Family) -> dict[str, Unit]:
    units = {COVERED_SECONDS: Unit("seconds", 1.0)}
    for metric in family.metrics:
        for statistic, name in metric.fields():
            match statistic:
                case Statistic.COUNT:
                    units[name] = Unit("count", 1.0)
                case Statistic.ZERO_RATIO | Statistic.BUSY_RATIO:
                    units[name] = Unit("ratio", 1.0)
                case _:
                    units[name] = Unit(metric.unit, 1.0)
    return units


def _best(found: list[Column]) -> tuple[tuple[Column, ...], list[str]]:
    """Of columns that are the same, the best; and the titles of the others."""
    best: dict[tuple[Role, str, str], Column] = {}
    for column in found:
        key = (column.role, column.measurement, column.name)
        if not column.join and (key not in best or column.rank < best[key].rank):
            best[key] = column
    kept = tuple(c for c in found if c.join or best[c.role, c.measurement, c.name] is c)
    used = {c.place for c in kept}
    return kept, [c.title for c in found if c.place not in used]
