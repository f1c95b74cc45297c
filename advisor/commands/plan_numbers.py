"""Numbers of the command line of `plan`, each refused with one line that says what to give."""

from __future__ import annotations

import argparse
import math

from advisor.errors import UsageError

_UNITS = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_MOST_PARAMETERS = 1e16


def whole(args: argparse.Namespace, name: str, least: int = 1) -> int | None:
    """A whole number from `least`; None where the flag was not given."""
    text = getattr(args, name)
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise UsageError(f"{_flag(name)} {text}: give a whole number from {least}")
    return value


def number(args: argparse.Namespace, name: str) -> float | None:
    """A number above 0; None where the flag was not given."""
    text = getattr(args, name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{_flag(name)} {text}: give a number above 0")
    return value


def count(args: argparse.Namespace, name: str) -> int | None:
    """Parameters, as 7B, 7e9 or 7000000000; None where the flag was not given."""
    text = getattr(args, name)
    if text is None:
        return None
    digits, factor = text.strip().casefold(), 1
    if digits and digits[-1] in _UNITS:
        factor, digits = _UNITS[digits[-1]], digits[:-1]
    try:
        value = float(digits) * factor
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and 1 <= value <= _MOST_PARAMETERS):
        raise UsageError(f"{_flag(name)} {text}: give a count such as 7000000000, 7e9 or 7B")
    return round(value)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
