"""The classifier itself: fitted to the table when it is first needed, for the columns that exist.

Nothing fitted is kept on disk: a fit takes seconds, and loading one would run code. scikit-learn
is imported with the first fit, so that a process in which nothing is left to telemetry does not
pay for it. The agent and the service tell no phases; a test holds them to that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from advisor.classifier.table import COLUMNS, Table, shipped
from advisor.phase import SERVING_PHASES, TRAINING_PHASES, Phase

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Row = Mapping[str, float | None]

_BROAD = (Phase.TRAINING_OR_FINETUNING, Phase.INFERENCE, Phase.UNKNOWN)

_TREES = 100
_LEAVES = 12
_FEWEST_ROWS = 30
_RATE = 0.08
_WEIGHT_OF_PEOPLE = 20.0  # simulated rows that one labelled by somebody counts as
_FOLDS = 3
_SEED = 0
_MOST = (0.005, 0.995)
_MARGIN = 0.1  # of a column's range in the table: so far beyond it a row is still like the table's

_TOGETHER: tuple[tuple[str, ...], ...] = (
    ("duty_ratio", "utilization_ratio"),
    ("power_peak_ratio", "power_trough_ratio", "power_deviation_ratio"),
    ("memory_ratio", "memory_spread_ratio"),
    ("alike_gpus", "quiet_share", "alternations_per_hour", "log10_seconds"),
)
"""Columns that one reading gives: where one of them is there, the others may be asked for too."""


def usable(row: Row) -> tuple[str, ...]:
    """The columns by which a row can be judged, in the table's order."""
    there = {name for name in COLUMNS if row.get(name) is not None}
    for group in _TOGETHER:
        if there & set(group):
            there |= set(group)
    return tuple(name for name in COLUMNS if name in there)


class Fitted:
    """A classifier by some of the columns: training or fine-tuning, inference, or neither.

    It is asked only what telemetry alone may tell: the table's phases are added up to the broad
    ones. Probabilities are calibrated on rows that the trees had not seen.
    """

    def __init__(self, table: Table, columns: tuple[str, ...]) -> None:
        import numpy as np
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.model_selection import StratifiedKFold
        from threadpoolctl import threadpool_limits

        cells = _cells(table.rows, columns)
        weights = np.ones(len(cells))
        weights[len(cells) - table.by_people :] = _WEIGHT_OF_PEOPLE
        broad = np.array([str(broadly(phase)) for phase in table.phases])
        trees = HistGradientBoostingClassifier(
            max_iter=_TREES,
            max_leaf_nodes=_LEAVES,
            min_samples_leaf=_FEWEST_ROWS,
            learning_rate=_RATE,
            l2_regularization=1.0,
            random_state=_SEED,
        )
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=_SEED)
        with threadpool_limits(1):  # on a busy server its threads wait for each other
            self._model: Any = CalibratedClassifierCV(
                trees, method="sigmoid", cv=folds, ensemble=False
            ).fit(cells, broad, sample_weight=weights)
        self._columns = columns
        self._ranges = {phase: _ranges(cells[broad == str(phase)]) for phase in _BROAD}

    def judge(self, rows: Sequence[Row]) -> list[tuple[Phase, float]]:
        """For each row the likeliest of the three, and its probability."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            found = self._model.predict_proba(_cells(rows, self._columns))
        best = found.argmax(axis=1)
        return [
            (Phase(str(self._model.classes_[i])), float(line[i]))
            for line, i in zip(found, best, strict=True)
        ]

    def outside(self, row: Row, phase: Phase) -> tuple[str, ...]:
        """The columns in which a row lies beyond what the table has of one of the three."""
        return tuple(
            name
            for name, (least, most) in zip(self._columns, self._ranges[phase], strict=True)
            if (value := row.get(name)) is not None and not least <= value <= most
        )


def broadly(phase: Phase) -> Phase:
    """What telemetry alone may tell of a phase."""
    if phase in TRAINING_PHASES:
        return Phase.TRAINING_OR_FINETUNING
    return Phase.INFERENCE if phase in SERVING_PHASES else Phase.UNKNOWN


def _ranges(cells: NDArray[np.float64]) -> list[tuple[float, float]]:
    import numpy as np

    # A stretch that hardly ran at all has quotients of almost nothing: a few rows are beyond sense.
    low, high = np.nanquantile(cells, _MOST, axis=0)
    beyond = _MARGIN * (high - low)
    return list(zip((low - beyond).tolist(), (high + beyond).tolist(), strict=True))


def _cells(rows: Sequence[Row], columns: Sequence[str]) -> NDArray[np.float64]:
    import numpy as np

    return np.array(
        [
            [np.nan if (value := row.get(name)) is None else value for name in columns]
            for row in rows
        ],
        dtype=np.float64,
    )


class Models:
    """Classifiers of one table, one for each set of columns that was asked for, fitted once."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._fitted: dict[tuple[str, ...], Fitted] = {}

    def of(self, columns: tuple[str, ...]) -> Fitted:
        """The classifier by these columns."""
        fitted = self._fitted.get(columns)
        if fitted is None:
            fitted = self._fitted[columns] = Fitted(self._table, columns)
        return fitted


@cache
def shipped_models() -> Models:
    """The classifiers of the table that Talla ships."""
    return Models(shipped())
