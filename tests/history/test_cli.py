"""The frame of the command line: options, settings, exit codes, and the last resort."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from advisor import cli, config
from advisor.commands import COMMANDS
from advisor.commands.reading import add_reading_options, open_reading
from telemetry.store import Store
from telemetry.window import Row, Window

_ROOT = Path(__file__).parents[2]


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2].rstrip("_")  # type: ignore[attr-defined]
        with pytest.raises(SystemExit) as stopped:
            cli.main([name, "--help"])
        assert stopped.value.code == 0
        assert f"talla-advisor {name}" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [[], ["dance"], ["export", "--until", "tomorrow"]])
def test_wrong_usage_is_exit_2(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(argv)
    assert stopped.value.code == 2


def test_no_store_named_is_exit_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(config, "DEFAULT_PATH", tmp_path / "none.toml")
    assert cli.main(["export"]) == 2
    assert "--store FILE" in capsys.readouterr().err


def test_a_store_of_nothing_is_exit_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    Store(tmp_path / "new.db").close()
    assert cli.main(["export", "--store", str(tmp_path / "new.db")]) == 1
    assert "nothing was recorded here yet" in capsys.readouterr().err


def test_what_nobody_expected_is_one_line_and_a_traceback_on_demand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> str:
        raise ZeroDivisionError("a\nsurprise")

    monkeypatch.setattr(config, "default_text", fail)
    assert cli.main(["config"]) == 1
    error = capsys.readouterr().err
    assert error == (
        "talla-advisor: unexpected failure (ZeroDivisionError: a surprise);"
        " talla-advisor --debug ... shows where\n"
    )
    for argv in (["--debug", "config"], ["config", "--debug"]):
        with pytest.raises(ZeroDivisionError):
            cli.main(argv)


def test_a_reader_that_leaves_is_no_failure(tmp_path: Path) -> None:
    rows = [
        Window("h", 300, 300 * n, 300, {("gpu", "G"): Row({"covered_seconds": 300.0})})
        for n in range(5000)
    ]
    with Store(tmp_path / "s.db") as store:
        store.append(rows)
    run = subprocess.Popen(
        [sys.executable, "-m", "advisor.cli", "export", "--store", str(tmp_path / "s.db")],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert run.stdout is not None
    assert run.stderr is not None
    with run.stdout, run.stderr:
        run.stdout.readline()
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.wait() == 0


def test_the_default_configuration_is_what_is_meant_by_default(tmp_path: Path) -> None:
    path = tmp_path / "advisor.toml"
    path.write_text(config.default_text())
    assert config.load(path) == config.Settings()
    told = tomllib.loads(path.read_text())
    assert {"language", "stores", "periods"} <= set(told), "every key is shown"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("stores = 7", "stores"),
        ("colour = 'red'", "colour: there is no such key"),
        ("language = 'fr'", "language"),
        ("[periods]\nsince = 'a week'", "since: 'a week' is no period"),
        ("[periods]\nuntil = '7d'", "periods.until: there is no such key"),
        ("stores = [", "is no TOML"),
    ],
)
def test_a_wrong_configuration_is_exit_78_with_file_and_key(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "advisor.toml"
    path.write_text(text)
    assert cli.main(["config", "--check", str(path)]) == 78
    error = capsys.readouterr().err
    assert f"{path}: " in error
    assert says in error
    assert len(error.splitlines()) == 1
    assert cli.main(["export", "--config", str(path)]) == 78


def test_stores_and_periods_come_from_the_configuration(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.append([Window("h", 300, 0, 300, {("host",): Row({"covered_seconds": 300.0})})])
    path = tmp_path / "advisor.toml"
    path.write_text(f"stores = ['{tmp_path / 's.db'}']\n[periods]\nsince = '2h'\n")
    parser = argparse.ArgumentParser()
    add_reading_options(parser)
    args = parser.parse_args(["--config", str(path), "--look-back", "1d", "--until", "600"])
    with open_reading(args) as reading:
        assert reading.history.hosts() == ["h"]
        assert (reading.since, reading.look_back, reading.until) == (7200, 86_400, 600)
        told = reading.told("h")
        assert told is not None
        assert (told.since, told.until) == (0, 600)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, advisor.cli; advisor.cli.parser();"
        "print(sorted({'numpy', 'sklearn', 'matplotlib', 'pydantic', 'rich', 'jinja2'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=_ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
