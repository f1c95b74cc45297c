"""Windows as the frames that are judged."""

from __future__ import annotations

from collections.abc import Sequence

from telemetry.simulation import Scenario
from telemetry.states import Classifier, Jobs, Surroundings, WindowState
from telemetry.window import Frame, Key, Window
from telemetry.workload import Kind


def frame(windows: Sequence[Window], key: Key) -> Frame:
    """The 5-minute windows of one subject."""
    rows = [(w, w.rows[key]) for w in windows if key in w.rows and w.tier == 300]
    names = {name for _, row in rows for name in row.values}
    return Frame(
        key,
        [w.start for w, _ in rows],
        [w.seconds for w, _ in rows],
        {name: [row.values.get(name) for _, row in rows] for name in names},
        [row.texts for _, row in rows],
    )


def states(scenario: Scenario, windows: Sequence[Window], gpu: int) -> list[WindowState]:
    """The state of a GPU in each window, by the classifier that Talla ships."""
    windows = [w for w in windows if w.tier == 300]
    keys = {key for w in windows for key in w.rows}
    around = Surroundings(
        frame(windows, ("host",)),
        tuple(frame(windows, key) for key in sorted(keys) if key[0] == "disk"),
        tuple(frame(windows, key) for key in sorted(keys) if key[0] == "mount"),
    )
    uuid = scenario.server.gpus[gpu].uuid
    kinds: list[Kind | None] = []
    shares: list[float | None] = []
    for window in windows:
        row = window.rows.get(("gpu_process", uuid, "0"))
        told = row.texts.get("workload") if row is not None else None
        kinds.append(Kind(told) if told is not None else None)
        cores = sum(r.values["cpu_cores"] for k, r in window.rows.items() if k[0] == "gpu_process")
        shares.append(cores / scenario.server.threads)
    jobs = Jobs(kinds, shares)
    return Classifier().classify(frame(windows, ("gpu", uuid)), around, jobs)
