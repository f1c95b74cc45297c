"""The command around the import: stores that cannot be written, wrong usage, real recordings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from advisor.cli import main
from telemetry.store import Store, StoreReader
from tests.importers.golden import windows_of
from tests.traces import GPUS

_LOG = "timestamp,index,utilization.gpu\n" + "".join(f"{1700000000 + n},0,50\n" for n in range(9))


def _log(folder: Path) -> str:
    path = folder / "smi.csv"
    path.write_text(_LOG)
    return str(path)


def test_a_store_that_an_agent_holds_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store(tmp_path / "agent.db"):
        assert main(["import", _log(tmp_path), "--store", str(tmp_path / "agent.db")]) == 1
    assert "another process writes this store (a running agent?)" in capsys.readouterr().err
    assert windows_of(tmp_path / "agent.db") == []


@pytest.mark.parametrize(
    ("store", "says"),
    [("no/such/folder.db", "there is no such folder"), ("smi.csv", "is no Talla store")],
)
def test_a_store_that_cannot_be_is_one_line(
    store: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = _log(tmp_path)
    assert main(["import", log, "--store", str(tmp_path / store)]) == 1
    error = capsys.readouterr().err
    assert says in error
    assert len(error.splitlines()) == 1
    assert (tmp_path / "smi.csv").read_text() == _LOG


@pytest.mark.parametrize(
    "wrong",
    [
        ["--gpus", "0"],
        ["--gpus", "many"],
        ["--interval", "-1"],
        ["--timezone", "Mars/Olympus"],
        ["--start", "yesterday"],
    ],
)
def test_wrong_usage_is_exit_2(
    wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["import", _log(tmp_path), "--store", str(tmp_path / "s.db"), *wrong])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    assert code == 2
    assert wrong[0] in capsys.readouterr().err
    assert not (tmp_path / "s.db").exists()


def test_a_file_without_times_ends_when_it_was_last_written(tmp_path: Path) -> None:
    log = tmp_path / "smi.csv"
    log.write_text("index,power.draw\n" + "0,100\n" * 60)
    assert main(["import", str(log), "--interval", "1", "--store", str(tmp_path / "s.db")]) == 0
    windows = windows_of(tmp_path / "s.db")
    assert windows[-1].end == int(log.stat().st_mtime)
    assert sum(w.seconds for w in windows if w.tier == 300) == 60


def test_no_bar_and_no_colour_where_there_is_no_terminal(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "advisor.cli", "import", _log(tmp_path), "--store", "s.db"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("name", GPUS)
def test_recordings_of_real_runs_import(name: str, traces: Path, tmp_path: Path) -> None:
    """Every row is taken, and the means over all windows are those of the rows."""
    store = tmp_path / "s.db"
    path = traces / f"{name}.csv"
    assert main(["import", str(path), "--host", "h", "--store", str(store)]) == 0
    rows = [line.split(",") for line in path.read_text().splitlines()]
    power = [float(r[rows[0].index("power_w")]) for r in rows[1:]]
    with StoreReader(store) as reader:
        frames = reader.frames(
            "h", "gpu", 300, since=0, until=1e12, fields=("power_watts_max", "covered_seconds")
        )
    assert len(frames) == GPUS[name]
    peaks = [p for f in frames for p in f.columns["power_watts_max"] if p is not None]
    assert max(peaks) == pytest.approx(max(power), abs=0.06)
    covered = sum(c or 0.0 for f in frames for c in f.columns["covered_seconds"])
    assert covered == pytest.approx(len(power), rel=0.02)
