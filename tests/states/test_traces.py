"""Recordings of real runs: work that went on is busy, and nothing of it is starved or stuck."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from advisor.cli import main
from telemetry.states import Classifier, Jobs, State, Surroundings
from telemetry.store import StoreReader
from telemetry.window import TIERS
from tests.states.stage import frames_of
from tests.traces import GPUS

CUTS = {"whole": (0.0, 1.0, 1), "first half": (0.0, 0.5, 1), "second half": (0.5, 1.0, 1)}
CUTS |= {"off by a third": (1 / 3, 1.0, 1), "each second reading": (0.0, 1.0, 2)}
_USE = ("sm_util_pct", "gpu_util_pct")
_HELD_MIB = 1000
"""Below it no job is on the card yet: one log shows 0.2 % at times, for a minute and a half, before
its training has taken any memory."""


def cut(source: Path, target: Path, share: tuple[float, float, int]) -> dict[str, tuple[int, int]]:
    """A block of a recording, and the first and last second at which each GPU is in use."""
    with source.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    use = next(name for name in _USE if name in rows[0])
    times = sorted({int(float(row["timestamp"])) for row in rows})
    first, last, every = share
    kept = set(times[int(first * len(times)) : int(last * len(times)) : every])
    block = [row for row in rows if int(float(row["timestamp"])) in kept]
    with target.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(block)
    at_work: dict[str, tuple[int, int]] = {}
    for row in block:
        held = float(row.get("mem_used_mib") or _HELD_MIB)
        if float(row[use]) > 0 and held >= _HELD_MIB:
            time = int(float(row["timestamp"]))
            at_work[row["gpu"]] = at_work.get(row["gpu"], (time, time))[0], time
    return at_work


@pytest.mark.parametrize("name", GPUS)
@pytest.mark.parametrize("share", CUTS)
def test_real_work_is_busy(name: str, share: str, traces: Path, tmp_path: Path) -> None:
    at_work = cut(traces / f"{name}.csv", tmp_path / "run.csv", CUTS[share])
    store = tmp_path / "s.db"
    assert main(["import", str(tmp_path / "run.csv"), "--host", "h", "--store", str(store)]) == 0
    with StoreReader(store) as reader:
        windows = [window for _, window in reader.windows_after(0, 100_000)]
    for tier in TIERS:
        inside: Counter[State] = Counter()
        frames = frames_of(w for w in windows if w.tier == tier)
        cards = [key for key in frames if key[0] == "gpu"]
        for number, key in enumerate(sorted(cards)):
            frame = frames[key]
            told = Classifier().classify(frame, Surroundings(None), Jobs([None] * len(frame)))
            states = {window.state for window in told}
            assert not states & {State.STARVED, State.STUCK}, (key, states)
            first, last = at_work.get(str(number), (0, 0))
            inside.update(
                window.state
                for window, start, seconds in zip(told, frame.start, frame.seconds, strict=True)
                if first <= start and start + seconds <= last + 1
            )
        if name.startswith("train") and inside:
            assert not set(inside) & {State.IDLE_FREE, State.IDLE_HELD}, inside
            assert inside[State.BUSY] >= 0.9 * inside.total(), inside
