"""What the daemon survives: a blocked GPU, a hundred thousand ticks."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from telemetry.store import StoreReader
from tests.agent.staged_agent import Server, children, stop, until
from tests.fakenvml.staged import Scenario

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("ticks", "growth_kib"),
    [
        (1_500, 4096),  # SQLite's cache and the first five minutes' statistics fill up meanwhile
        pytest.param(100_000, 1024, marks=[pytest.mark.long, pytest.mark.timeout(1800)]),
    ],
)
def test_nothing_grows_over_many_ticks(
    fakenvml: Path, tmp_path: Path, ticks: int, growth_kib: int
) -> None:
    text = "gpus=8\n" + "".join(f"gpu{n}.proc={os.getpid()},C,1000,5\n" for n in range(8))
    staged = Scenario(fakenvml, tmp_path, text)
    done = subprocess.run(
        [sys.executable, "-m", "tests.agent.soak", str(ticks), str(tmp_path)],
        env={**os.environ, **staged.environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["missed"] == 0
    assert len(done.stderr.splitlines()) < 50, done.stderr  # of the long run: more than a day's
    assert len(told["early"]) == len(told["late"]) == 2  # the daemon and its child
    for early, late in zip(told["early"], told["late"], strict=True):
        assert late["descriptors"] <= early["descriptors"]
        assert late["threads"] <= early["threads"]
        assert late["own_kib"] <= early["own_kib"] + growth_kib, told


@pytest.fixture
def blocked(fakenvml: Path, tmp_path: Path) -> Iterator[Server]:
    text = "gpus=8\ngpu3.nvmlDeviceGetUtilizationRates=HANG@4\n"
    # One clock for all children: a probe must not find the card well, as a new library would.
    server = Server(fakenvml, tmp_path, scenario=text, stepped=True)
    yield server
    server.kill()


def covered(server: Server, measurement: str, start: int) -> dict[str, float]:
    """Seconds covered in the whole 10-second window that begins at `start`, by subject."""
    with StoreReader(server.store) as store:
        return {
            key[-1]: row.values["covered_seconds"]
            for _, window in store.windows_after(0, 1000)
            if window.tier == 10 and window.start == start
            for key, row in window.rows.items()
            if key[0] == measurement
        }


def test_one_gpu_blocked_for_ever_costs_the_others_its_deadline_once(blocked: Server) -> None:
    begun = time.time()
    process = blocked.start()
    until(lambda: children(process.pid) != [])
    time.sleep(3.0)  # some ticks of eight GPUs that are well
    blocked.staged.at(4.0)
    hung = time.time()
    until(lambda: "nvml hung" in blocked.log.read_text())
    assert time.time() - hung < 10
    whole = int(time.time()) // 10 * 10 + 10
    until(lambda: time.time() > whole + 11.5)
    # The host has lost nothing at any time, the seven nothing from then on.
    assert covered(blocked, "host", whole) == {"host": 10.0}
    assert covered(blocked, "host", whole - 10) == {"host": 10.0} or whole - 10 < begun
    gpus = covered(blocked, "gpu", whole)
    stuck, *others = sorted(gpus.values())
    assert others == [10.0] * 7
    assert stuck == 0
    began = time.monotonic()
    stop(process, within=3.0)
    assert time.monotonic() - began < 3.0
    assert children(process.pid) == []
