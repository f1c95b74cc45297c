"""Draws the training table: simulated stretches of work, their windows, and what they show.

`python -m advisor.classifier.generator` prints the table that Talla ships. Each row is one stretch
on one GPU, made second by second, put into 5-minute windows, and read by the same `features_of`
that reads real ones.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from advisor.classifier.parameters import Parameters, Range, WorkKind
from advisor.classifier.table import COLUMNS, encoded
from advisor.features import Features, features_of
from advisor.phase import Phase
from telemetry.window import Frame

Seconds = NDArray[np.float64]

_WINDOW = 300
_LIMIT_WATTS = 500.0
_MEMORY_BYTES = 80e9
_PARTIAL_OFTEN = 0.5  # a recording seldom begins and ends with a window
_LEAST_SECONDS = 240
_WITHIN_SECONDS_OFTEN = 0.5  # waits for data shorter than a second, against whole seconds
_ONE_SERVER_OFTEN = 0.7  # one server over several GPUs, against replicas


def rows(parameters: Parameters) -> Iterator[tuple[Phase, Features]]:
    """Every row of the table, in order. The same parameters give the same rows."""
    random = np.random.Generator(np.random.PCG64(parameters.seed))
    for kind in parameters.kinds:
        for _ in range(parameters.rows_a_kind):
            yield kind.phase, _stretch(random, parameters, kind)


def _stretch(random: np.random.Generator, parameters: Parameters, kind: WorkKind) -> Features:
    """One simulated stretch of work as the advisor would see it."""
    common = parameters.common
    length = round(_draw(random, common.windows)) * _WINDOW
    if random.random() < _PARTIAL_OFTEN:
        length = max(_LEAST_SECONDS, length - int(random.integers(0, _WINDOW)))
    work = _work(random, kind, length)
    if not work.any():
        work[0] = 1.0
    alike, linked = _gpus(random, kind)
    frame = _frame(random, parameters, kind, work, linked)
    active = [i for i, top in enumerate(frame.columns["utilization_ratio_max"]) if top]
    windows = list(range(active[0], active[-1] + 1))
    features = features_of(frame, windows, active, _LIMIT_WATTS)
    return replace(features, alike_gpus=alike)


def _draw(random: np.random.Generator, range_: Range) -> float:
    if range_.log:
        return float(np.exp(random.uniform(np.log(range_.low), np.log(range_.high))))
    return float(random.uniform(range_.low, range_.high))


def _gpus(random: np.random.Generator, kind: WorkKind) -> tuple[int, bool]:
    """How many GPUs do the same, and whether they exchange: ranks of one job do, replicas of a
    server do not, and are as busy as each other or not.
    """
    gpus = int(random.choice(kind.gpus))
    ranks = kind.pattern == "steps" or random.random() < _ONE_SERVER_OFTEN
    return (gpus if ranks else int(random.integers(1, gpus + 1))), ranks and gpus > 1


# ---- What is done in each second, 0 to 1 ----


def _work(random: np.random.Generator, kind: WorkKind, length: int) -> Seconds:
    if kind.pattern in ("steps", "loop"):
        return _steps(random, kind, length)
    return _requests(random, kind, length)


def _steps(random: np.random.Generator, kind: WorkKind, length: int) -> Seconds:
    """One step after the other, with waits for data and pauses for checkpoints or evaluation."""
    work = np.ones(length)
    if random.random() < kind.stalled_often:
        share = _draw(random, kind.stalled_share)
        if random.random() < _WITHIN_SECONDS_OFTEN:
            work *= np.clip((1.0 - share) * random.uniform(0.7, 1.3, length), 0.02, 1.0)
        else:
            work *= ~_spells(random, length, share, float(random.uniform(1, 8)))
    if kind.pattern == "steps" and random.random() < 0.6:
        every, lasts = random.uniform(300, 3600), random.uniform(2, 90)
        work[(np.arange(length) + random.uniform(0, every)) % every < lasts] = 0.0
    return work


def _requests(random: np.random.Generator, kind: WorkKind, length: int) -> Seconds:
    """Requests that come and go: in seconds, and over hours with times in which nobody asks."""
    if random.random() < kind.saturated_often:
        return np.ones(length)
    load = _draw(random, kind.load)
    work = _spells(random, length, load, float(random.uniform(1, 40))).astype(float)
    if length > 4 * _WINDOW and random.random() < 0.5:
        quiet = _spells(random, length, float(random.uniform(0.1, 0.8)), random.uniform(600, 7200))
        work *= ~quiet
    return work


def _spells(
    random: np.random.Generator, length: int, share: float, lasting: float
) -> NDArray[np.bool_]:
    """Seconds that are on for a share of the time, in spells of a mean length."""
    if share >= 1.0:
        return np.ones(length, dtype=bool)
    off = lasting * (1.0 - share) / max(share, 1e-3)
    on = np.zeros(length, dtype=bool)
    place = 0.0
    state = bool(random.random() < share)
    while place < length:
        end = place + max(1.0, random.exponential(lasting if state else off))
        on[int(place) : int(end)] = state
        place, state = end, not state
    return on


# ---- What is read of it ----


def _frame(
    random: np.random.Generator,
    parameters: Parameters,
    kind: WorkKind,
    work: Seconds,
    linked: bool,
) -> Frame:
    common = parameters.common
    length = len(work)
    noise = _draw(random, common.reading_noise)

    turns = np.arange(length) / _draw(random, common.drift_seconds) + random.random()
    drift = 1.0 + _draw(random, common.drift_ratio) * np.sin(2 * np.pi * turns)

    def read(level: float, top: float = 1.0) -> Seconds:
        return np.clip(
            level * drift * work * (1.0 + noise * random.standard_normal(length)), 0.0, top
        )

    used = _draw(random, kind.utilization_ratio)
    blur = _draw(random, common.utilization_noise) * random.standard_normal(length)
    if kind.pattern != "frames" and random.random() < common.saturated_reading_often:
        used, blur = 1.0, np.zeros(length)
    utilization = np.where(work > 0, np.clip((used + blur) * work, 0.01, 1.0), 0.0)
    idle = _draw(random, common.idle_power_ratio)
    waiting = idle + _draw(random, common.occupied_power_tail) * idle
    level = max(waiting, _draw(random, kind.power_ratio))
    swing = _draw(random, kind.swing_ratio) * random.uniform(-1.0, 1.0, length)
    power = waiting + (level - waiting) * work * drift * (1.0 + swing)
    power = np.clip(power * (1.0 + noise * random.standard_normal(length)), idle, 1.03)
    held = _draw(random, kind.memory_ratio)
    growth = min(_draw(random, kind.memory_growth_ratio), max(0.0, 0.99 - held))
    growth *= random.random() >= common.flat_often
    memory = held + growth * np.minimum(1.0, np.arange(length) / random.uniform(60, 4 * length))
    if random.random() < common.start_seen_often:
        memory *= np.minimum(1.0, np.arange(length) / _draw(random, common.start_seconds))
    pcie = _draw(random, kind.pcie_bytes_per_second)
    link = _draw(random, kind.link_bytes_per_second) * linked
    return _windows(
        {
            "utilization_ratio": utilization,
            "power_watts": power * _LIMIT_WATTS,
            "memory_used_bytes": memory * _MEMORY_BYTES,
            "sm_active_ratio": read(_draw(random, kind.sm_active_ratio)),
            "tensor_active_ratio": read(_draw(random, kind.tensor_active_ratio)),
            "dram_active_ratio": read(_draw(random, kind.dram_active_ratio)),
            "pcie_rx_bytes_per_second": read(pcie, np.inf),
            "nvlink_rx_bytes_per_second": read(link, np.inf),
        }
    )


def _windows(seconds: dict[str, Seconds]) -> Frame:
    """5-minute windows of 1-second readings, with the statistics that the features look at."""
    length = len(seconds["utilization_ratio"])
    cuts = list(range(0, length, _WINDOW))
    frame = Frame(("gpu", "simulated"), start=cuts)
    frame.seconds = [min(_WINDOW, length - cut) for cut in cuts]
    for name, series in seconds.items():
        parts = [series[cut : cut + _WINDOW] for cut in cuts]
        frame.columns[name] = [float(part.mean()) for part in parts]
        if name in ("utilization_ratio", "power_watts", "memory_used_bytes"):
            frame.columns[f"{name}_max"] = [float(part.max()) for part in parts]
            frame.columns[f"{name}_min"] = [float(part.min()) for part in parts]
    zeros = [float((seconds["utilization_ratio"][c : c + _WINDOW] == 0.0).mean()) for c in cuts]
    frame.columns["utilization_ratio_zero_ratio"] = list(zeros)
    frame.columns["memory_total_bytes"] = [_MEMORY_BYTES] * len(cuts)
    return frame


def main() -> int:
    """Prints the table."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("phase", *COLUMNS))
    for phase, features in rows(Parameters.load()):
        cells = encoded(features)
        writer.writerow((phase, *("" if cells[c] is None else f"{cells[c]:.4g}" for c in COLUMNS)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
