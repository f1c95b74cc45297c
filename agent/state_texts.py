"""The state of each GPU in a window, as a text for dashboards, from the one function that decides.

Judged from the window alone, so that a window says the same each time it is shipped. The advisor,
which sees the windows before and after, may know better; it never reads this text.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from telemetry.states import Classifier, Jobs, Surroundings
from telemetry.window import Frame, Key, Window
from telemetry.workload import Kind

_LOG = logging.getLogger(__name__)

HOST_KEY = ("host",)


class StateTexts:
    """Texts `state` and `cause` for the GPUs' rows of a window."""

    def __init__(self) -> None:
        self._classifier = Classifier()

    def keep(self, windows: Iterable[Window]) -> None:
        """Adds the texts to windows that were just closed: judged once, before they are stored."""
        for window in windows:
            try:
                for key, texts in self(window).items():
                    row = window.rows[key]
                    row.texts = {**row.texts, **texts}
            except Exception:  # noqa: BLE001 - a window is worth more than what is told of it
                _LOG.debug("no states are told of a window", exc_info=True)

    def __call__(self, window: Window) -> Mapping[Key, Mapping[str, str]]:
        """The texts of the GPUs that have none yet."""
        untold = [k for k, row in window.rows.items() if k[0] == "gpu" and "state" not in row.texts]
        if not untold:
            return {}
        host = _frame(window, HOST_KEY) if HOST_KEY in window.rows else None
        around = Surroundings(host, *(self._all(window, name) for name in ("disk", "mount", "nic")))
        kinds = _kinds(window)
        texts: dict[Key, dict[str, str]] = {}
        for key in untold:
            judged = self._classifier.classify(
                _frame(window, key), around, Jobs([kinds.get(key[1])])
            )[0]
            texts[key] = {"state": judged.state.value}
            if judged.cause is not None:
                texts[key]["cause"] = judged.cause.value
        return texts

    @staticmethod
    def _all(window: Window, measurement: str) -> tuple[Frame, ...]:
        return tuple(_frame(window, key) for key in window.rows if key[0] == measurement)


def _frame(window: Window, key: Key) -> Frame:
    """One subject of the window as a frame of one window."""
    row = window.rows[key]
    columns: dict[str, list[float | None]] = {n: [v] for n, v in row.values.items()}
    return Frame(key, [window.start], [window.seconds], columns, [row.texts])


def _kinds(window: Window) -> dict[str, Kind | None]:
    """The kind of work of each GPU's processes, None where they differ."""
    kinds: dict[str, Kind | None] = {}
    for key, row in window.rows.items():
        if key[0] == "gpu_process" and "workload" in row.texts:
            kind = Kind(row.texts["workload"])
            kinds[key[1]] = kind if kinds.get(key[1], kind) == kind else None
    return kinds
