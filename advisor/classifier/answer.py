"""What the classifier says of stretches of work, where it is sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.classifier.model import Models, Row, usable
from advisor.classifier.table import encoded
from advisor.features import Features
from advisor.phase import Phase

_SHOWN = (
    "duty_ratio",
    "utilization_ratio",
    "power_ratio",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "memory_ratio",
)
"""The readings that people know, told with their values."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A broad phase, how likely it is, and the readings it rests on, as lines."""

    phase: Phase
    probability: float
    readings: tuple[str, ...]


def answers(work: Sequence[Features], sure_at: float, models: Models) -> list[Answer | None]:
    """For each stretch what it is; None below the probability, or beyond what the table has."""
    told: list[Answer | None] = [None] * len(work)
    alike: dict[tuple[str, ...], list[tuple[int, Row]]] = {}
    for i, features in enumerate(work):
        row: Row = encoded(features)
        alike.setdefault(usable(row), []).append((i, row))
    for columns, places in alike.items():
        fitted = models.of(columns)
        judged = fitted.judge([row for _, row in places])
        for (i, row), (phase, probability) in zip(places, judged, strict=True):
            if phase is Phase.UNKNOWN or probability < sure_at or fitted.outside(row, phase):
                continue
            told[i] = Answer(phase, probability, _readings(row, columns))
    return told


def _readings(row: Row, columns: Sequence[str]) -> tuple[str, ...]:
    shown = [f"{name} {value:.2f}" for name in _SHOWN if (value := row.get(name)) is not None]
    others = [name for name in columns if name not in _SHOWN and row.get(name) is not None]
    return f"by {', '.join(shown)}", f"and by {', '.join(others)}"
