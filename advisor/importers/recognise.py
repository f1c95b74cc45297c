"""The columns of a log without a header, as far as their cells leave no doubt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from advisor.importers.cells import absent
from advisor.importers.columns import Unit

_TIME = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d.*|1\d{9}(\.\d+)?")
_UUID = re.compile(r"(GPU|MIG)-[0-9a-fA-F-]{8,}.*")
_BUS = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
_CARD = re.compile(r"(NVIDIA|Tesla|Quadro|GeForce|TITAN|GRID)\b.*")
_QUANTITY = re.compile(r"([-+]?\d+(?:\.\d*)?)\s*(\S+)")


def recognise(rows: Sequence[Sequence[str]], written: Mapping[str, Unit]) -> list[str]:
    """A title for each column, empty where it cannot be told.

    Times, UUIDs, bus ids and card names speak for themselves. Per cent and watts are told only
    where units are written: nvidia-smi has them as GPU before memory, and a power limit is
    constant and above the draw. MiB is used, free or total: nothing in the cells says which.
    """
    width = max((len(r) for r in rows), default=0)
    whole = [r for r in rows if len(r) == width]
    columns = [[r[i] for r in whole if not absent(r[i])] for i in range(width)]
    titles = [_speaking(cells) for cells in columns]
    _keep_first(titles)
    by_unit: dict[str, list[int]] = {}
    for i, cells in enumerate(columns):
        units = {m[2] if (m := _QUANTITY.fullmatch(c)) else "" for c in cells}
        if not titles[i] and len(units) == 1 and next(iter(units)) in written:
            by_unit.setdefault(next(iter(units)), []).append(i)
    if by_unit:
        _index(titles, columns, min(i for places in by_unit.values() for i in places))
    for i, title in zip(by_unit.get("W", ()), _watts(columns, by_unit.get("W", [])), strict=True):
        titles[i] = title
    for i, title in zip(by_unit.get("%", ()), _percent(whole, by_unit.get("%", [])), strict=True):
        titles[i] = title
    return titles


def _speaking(cells: Sequence[str]) -> str:
    for title, pattern in (
        ("timestamp", _TIME),
        ("uuid", _UUID),
        ("pci.bus_id", _BUS),
        ("name", _CARD),
    ):
        if cells and all(pattern.fullmatch(c) for c in cells):
            return title
    return ""


def _keep_first(titles: list[str]) -> None:
    for i, title in enumerate(titles):
        if title and title in titles[:i]:
            titles[i] = ""


def _index(titles: list[str], columns: Sequence[Sequence[str]], before: int) -> None:
    """An index counts 0, 1, 2 ... and stands before the readings."""
    for i in range(before):
        values = set(columns[i])
        if not titles[i] and values and values == {str(n) for n in range(len(values))}:
            titles[i] = "index"
            return


def _watts(columns: Sequence[Sequence[str]], places: Sequence[int]) -> list[str]:
    values = [[float(c.split()[0]) for c in columns[i]] for i in places]
    if len(places) == 1:
        return ["power.draw"]
    if len(places) == 2:
        for limit in (0, 1):
            draw = 1 - limit
            constant = len(set(values[limit])) == 1 and len(set(values[draw])) > 1
            if constant and values[limit][0] >= max(values[draw]):
                return ["power.draw" if i == draw else "power.limit" for i in (0, 1)]
    return [""] * len(places)


def _percent(rows: Sequence[Sequence[str]], places: Sequence[int]) -> list[str]:
    if len(places) == 1:
        return ["utilization.gpu"]
    if len(places) == 2:
        pairs = [(r[places[0]], r[places[1]]) for r in rows]
        numbers = [
            (float(a.split()[0]), float(b.split()[0]))
            for a, b in pairs
            if not absent(a) and not absent(b)
        ]
        # Memory is read or written only while a kernel runs.
        if numbers and all(b == 0 for a, b in numbers if a == 0):
            return ["utilization.gpu", "utilization.memory"]
    return [""] * len(places)
