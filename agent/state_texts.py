"""The state of each GPU in a window, as a text for dashboards, from the one function that decides.

Judged from the window alone, so that a window says the same each time it is shipped. The advisor,
which sees the windows before and after, may know better; it never reads this text.
"""

from __future__ import annotations

from collections.abc import Mapping

from telemetry.states import FIELDS, HOST_FIELDS, Classifier, Jobs, Surroundings
from telemetry.window import Frame, Key, Window
from telemetry.workload import Kind

HOST_KEY = ("host",)


class StateTexts:
    """Texts `state` and `cause` for the GPUs' rows of a window."""

    def __init__(self) -> None:
        self._classifier = Classifier()

    def __call__(self, window: Window) -> Mapping[Key, Mapping[str, str]]:
        host = _frame(window, HOST_KEY, HOST_FIELDS) if HOST_KEY in window.rows else None
        around = Surroundings(host, self._all(window, "disk"), self._all(window, "mount"))
        texts: dict[Key, dict[str, str]] = {}
        for key in window.rows:
            if key[0] != "gpu":
                continue
            judged = self._classifier.classify(
                _frame(window, key, FIELDS), around, Jobs([_kind(window, key[1])])
            )[0]
            texts[key] = {"state": judged.state.value}
            if judged.cause is not None:
                texts[key]["cause"] = judged.cause.value
        return texts

    @staticmethod
    def _all(window: Window, measurement: str) -> tuple[Frame, ...]:
        return tuple(
            _frame(window, key, tuple(row.values))
            for key, row in window.rows.items()
            if key[0] == measurement
        )


def _frame(window: Window, key: Key, fields: tuple[str, ...]) -> Frame:
    """One subject of the window as a frame of one window."""
    row = window.rows[key]
    columns: dict[str, list[float | None]] = {name: [row.values.get(name)] for name in fields}
    return Frame(key, [window.start], [window.seconds], columns, [row.texts])


def _kind(window: Window, uuid: str) -> Kind | None:
    """The kind of work of the GPU's processes, where they agree."""
    kinds = {
        row.texts["workload"]
        for key, row in window.rows.items()
        if key[:2] == ("gpu_process", uuid) and "workload" in row.texts
    }
    return Kind(kinds.pop()) if len(kinds) == 1 else None
