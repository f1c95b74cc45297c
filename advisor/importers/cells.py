"""Cells of logs become numbers and times. What says nothing is None, never a zero."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime, tzinfo

from advisor.importers.columns import Column, Unit

_ABSENT = frozenset({"", "-", "n/a", "na", "nan", "none", "null", "err!", "not supported"})
_BRACKETED = re.compile(r"\[.*\]?")
_QUANTITY = re.compile(r"([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S.*)")
_ACTIVE = {"active": 1.0, "not active": 0.0}
_SLACK = 1.02  # DCGM's ratios overshoot 1 by rounding

# DCGM's values for "no data", "not found", "not supported", "no permission" (dcgm_structs.h:
# DCGM_INT32_BLANK, DCGM_INT64_BLANK, DCGM_FP64_BLANK and the three after each).
_BLANKS = (2147483632.0, 9223372036854775792.0, 140737488355328.0)


def absent(text: str) -> bool:
    """Whether a cell says that there is no value: empty, `[N/A]`, `N/A`, `[Unknown Error]`, ..."""
    if text[:1].isdigit():
        return False
    return text.lower() in _ABSENT or _BRACKETED.fullmatch(text) is not None


def number(text: str, column: Column, written: Mapping[str, Unit]) -> float | None:
    """The value of a cell in base units; None where it says that there is none.

    Raises ValueError, with the reason, for what is no value of this column.
    """
    if absent(text):
        return None
    if column.bits:
        return _bit(text, column.bits)
    unit = column.unit
    if unit.dimension == "active":
        if text.lower() not in _ACTIVE:
            raise ValueError("is neither Active nor Not Active")
        return _ACTIVE[text.lower()]
    try:
        value = float(text)
    except ValueError:
        match = _QUANTITY.fullmatch(text)
        told = written.get(match[2].strip()) if match else None
        if match is None or told is None or unit.dimension not in (told.dimension, "plain"):
            raise ValueError("is no number of this column") from None
        value, unit = float(match[1]), told
    if not math.isfinite(value):
        raise ValueError("is no number of this column")
    if value >= _BLANKS[0] and any(blank <= value <= blank + 3 for blank in _BLANKS):
        return None
    value *= unit.factor
    if unit.dimension == "ratio":
        if not 0.0 <= value <= _SLACK:
            raise ValueError("is out of range: a share lies between 0 and 1 (100 %)")
        return min(value, 1.0)
    if value < 0 and unit.dimension != "celsius":
        raise ValueError("is negative")
    return value


def _bit(text: str, bits: int) -> float:
    try:
        mask = int(text, 16) if text.lower().startswith("0x") else int(float(text))
    except (ValueError, OverflowError):
        raise ValueError("is no mask of reasons") from None
    return 1.0 if mask & bits else 0.0


def looks_numeric(text: str, written: Mapping[str, Unit]) -> bool:
    """Whether a cell is a number, with or without a unit."""
    match = _QUANTITY.fullmatch(text)
    if match is not None and match[2].strip() in written:
        return True
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def instant(text: str, zone: tzinfo) -> tuple[float, bool]:
    """Unix time of a cell, and whether `zone` had to be assumed.

    Epoch in seconds, milliseconds, microseconds or nanoseconds (told by its size), ISO 8601, or
    nvidia-smi's `2025/07/26 23:53:30.945`. Raises ValueError.
    """
    try:
        value = float(text)
    except ValueError:
        moment = datetime.fromisoformat(text.replace("/", "-"))
        if moment.tzinfo is None:
            return moment.replace(tzinfo=zone).timestamp(), True
        return moment.timestamp(), False
    if not 0 <= value < 1e20:
        raise ValueError("is no time") from None
    for scale, above in ((1e9, 1e17), (1e6, 1e14), (1e3, 1e11)):
        if value >= above:
            return value / scale, False
    return value, False
