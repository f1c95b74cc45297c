"""`talla-advisor report` on real stores: what goes where, and what is said when it cannot."""

import json
import time
from pathlib import Path

import pytest

from advisor.cli import main
from telemetry.simulation import history, load_scenario
from telemetry.store import Store

START = 1_772_409_600  # Mon 2 Mar 2026, 00:00 UTC


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated week of LoRA on four cards."""
    path = tmp_path_factory.mktemp("store") / "tuning.db"
    scenario = load_scenario("finetuning")
    with Store(path) as kept:
        inventory = scenario.inventory()
        kept.append(inventories=[(float(START), inventory.host, inventory.to_json())])
        kept.append(list(history(scenario, START, 7)))
    return path


def test_the_first_screen_goes_to_the_terminal(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--store", str(store)]) == 0
    text = capsys.readouterr().out
    assert "1 ✓ fits" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_files_are_written_and_their_paths_printed(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "folder"
    command = ["report", "--store", str(store), "-o", str(out), "--lang", "en,es"]
    assert main([*command, "--format", "html,md,json"]) == 0
    paths = capsys.readouterr().out.splitlines()
    names = ["report.en.html", "report.en.md", "report.es.html", "report.es.md", "report.json"]
    assert sorted(paths) == [str(out / name) for name in names]
    assert sorted(p.name for p in out.iterdir()) == names
    assert "✓</span> adecuado" in (out / "report.es.html").read_text("utf-8")


def test_json_alone_goes_to_standard_output(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--store", str(store), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [s["verdict"] for s in document["servers"]] == ["right"]
    # The period told is a week by default, of four GPUs.
    assert round(sum(document["summary"]["gpu_hours"].values())) == 4 * 168


@pytest.mark.parametrize("option", [["--format", "pdf"], ["--lang", "fr"], ["--format", ","]])
def test_what_there_is_not_is_wrong_usage(
    option: list[str], store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["report", "--store", str(store), *option])
    assert stop.value.code == 2
    assert "is not one of" in capsys.readouterr().err


def test_a_folder_that_cannot_be_is_said_in_one_line(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    assert main(["report", "--store", str(store), "-o", str(taken)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(taken) in error
    assert "-o" in error


def test_the_zone_of_the_machine_changes_nothing(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    screens = set()
    for zone in ("UTC", "America/Lima"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert main(["report", "--store", str(store), "--lang", "es"]) == 0
        screens.add(capsys.readouterr().out)
    monkeypatch.undo()
    time.tzset()
    assert len(screens) == 1
