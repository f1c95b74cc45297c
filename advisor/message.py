"""Sentences for people: a template and its values, so that they can be put into any language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its unit: bytes, bits/second, bytes/second, ratio, hours, watts, count, ..."""

    value: float
    unit: str

    def __str__(self) -> str:
        return self.text(".")

    def text(self, decimal_point: str) -> str:
        """For people: 3 significant digits, decimal prefixes, a share as per cent."""
        if self.unit == "ratio":
            return _number(self.value * 100, decimal_point) + " %"
        if self.unit in ("count", "GPUs", "cores", "sockets"):
            unit = "" if self.unit == "count" else f" {self.unit}"
            return _number(self.value, decimal_point) + unit
        if self.unit == "times":
            return f"{self.value:.2f}".replace(".", decimal_point) + " ×"
        if self.unit == "capability":
            return f"{self.value:.1f}"
        if self.unit == "hours":
            return _number(self.value, decimal_point) + " h"
        prefix = ""
        value = self.value
        for factor, letter in _PREFIXES:
            if abs(value) >= factor * 0.9995:
                value, prefix = value / factor, letter
                break
        short = {"bytes": "B", "bits/second": "b/s", "bytes/second": "B/s", "watts": "W"}
        return f"{_number(value, decimal_point)} {prefix}{short.get(self.unit, self.unit)}"


def _number(value: float, decimal_point: str) -> str:
    if abs(value) >= 100 or value == int(value):
        text = f"{value:.0f}"
    elif abs(value) >= 10:
        text = f"{value:.1f}"
    else:
        text = f"{value:.2f}".rstrip("0").rstrip(".")
    return text.replace(".", decimal_point)


@dataclass(frozen=True, slots=True)
class Message:
    """An English template in the manner of str.format, with named values.

    The template is also the key under which translations are found; a value may be a message.
    """

    template: str
    values: Mapping[str, Value] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.template.format(**self.values)


Value = str | int | float | Amount | Message


def say(template: str, **values: Value) -> Message:
    """A message."""
    return Message(template, values)
