"""The classifier on rows of its own table that it was not fitted to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from advisor.classifier.model import Models, broadly
from advisor.classifier.table import COLUMNS, Table
from advisor.phase import Phase

_FOLDS = 3

COLUMN_SETS: dict[str, tuple[str, ...]] = {
    "all columns": COLUMNS,
    "without activity counters and links": tuple(
        name
        for name in COLUMNS
        if not name.startswith(("sm_", "tensor_", "dram_", "pcie_", "nvlink_"))
    ),
    "utilisation and power": tuple(
        name
        for name in COLUMNS
        if not name.startswith(("sm_", "tensor_", "dram_", "pcie_", "nvlink_", "memory_"))
    ),
}


@dataclass(frozen=True, slots=True)
class Scores:
    """Rows by outcome, of those that are training or inference; and those that are neither, told
    as one of the two all the same.
    """

    right: int
    abstained: int
    wrong: int
    neither_told: int


def held_out(table: Table, columns: tuple[str, ...], sure_at: float) -> Scores:
    """Every row judged by a classifier that was fitted to two thirds of the others."""
    counts: Counter[str] = Counter()
    for fold in range(_FOLDS):
        rest = [i for i in range(len(table.rows)) if i % _FOLDS != fold]
        part = Table([table.phases[i] for i in rest], [table.rows[i] for i in rest])
        out = [i for i in range(len(table.rows)) if i % _FOLDS == fold]
        fitted = Models(part).of(columns)
        judged = fitted.judge([table.rows[i] for i in out])
        for i, (phase, probability) in zip(out, judged, strict=True):
            true = broadly(table.phases[i])
            told = phase if probability >= sure_at else Phase.UNKNOWN
            counts[_outcome(true, told)] += 1
    return Scores(counts["right"], counts["abstained"], counts["wrong"], counts["neither_told"])


def _outcome(true: Phase, told: Phase) -> str:
    if true is Phase.UNKNOWN:
        return "neither_told" if told is not Phase.UNKNOWN else "neither"
    if told is Phase.UNKNOWN:
        return "abstained"
    return "right" if told is true else "wrong"
