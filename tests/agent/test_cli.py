"""The command line: what it prints, and one clear line for whatever is wrong."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent import cli
from agent.config.text import default_toml
from telemetry.metrics import FAMILIES
from telemetry.store import Store, StoreReader
from tests.agent.command import AGENT, talla_agent
from tests.require import held_back

NEWER = "PRAGMA user_version = 99"


def test_config_prints_the_default_and_checks_it(tmp_path: Path) -> None:
    printed = talla_agent("config")
    assert (printed.code, printed.out) == (0, default_toml())
    file = tmp_path / "agent.toml"
    file.write_text(printed.out)
    assert talla_agent("config", "--check", file).code == 0


@pytest.mark.parametrize(
    "command", [("config", "--check"), ("run", "--config"), ("once", "--json", "--config")]
)
def test_a_wrong_configuration_ends_every_command_with_78(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    file = tmp_path / "agent.toml"
    file.write_text("[store]\nkeep_5m_dys = 3\n")
    refused = talla_agent(*command, file)
    assert refused.code == 78
    line = refused.complaint()
    assert line.startswith(f"talla-agent: {file}:2: store.keep_5m_dys: ")
    assert "keep_5m_days" in line
    absent = talla_agent(*command, tmp_path / "absent.toml")
    assert absent.code == 78
    assert "absent.toml: cannot be read" in absent.complaint()


def test_wrong_usage_is_2_and_help_is_0() -> None:
    assert talla_agent("sing").code == 2
    assert talla_agent("simulate", "--days", "0").code == 2
    assert talla_agent().code == 2
    shown = talla_agent("--help")
    assert shown.code == 0
    assert "exit codes: 0 done, 1 failed, 2 wrong usage, 78 wrong configuration" in shown.out
    assert talla_agent("--version").out.startswith("talla-agent ")


def test_an_unexpected_failure_is_one_line_unless_asked_for_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> str:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("agent.config.text.default_toml", fail)
    assert cli.main(["config"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "talla-agent: unexpected failure (RuntimeError: two lines);"
        " talla-agent --debug ... shows where\n"
    )
    with pytest.raises(RuntimeError):
        cli.main(["config", "--debug"])


def test_a_reader_that_leaves_is_no_fault() -> None:
    with subprocess.Popen(
        [*AGENT, "metrics", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


def test_every_metric_is_listed_with_unit_and_fields() -> None:
    document = talla_agent("metrics", "--json").json()
    assert [f["measurement"] for f in document] == [f.measurement for f in FAMILIES]
    gpu = {m["name"]: m for m in document[0]["metrics"]}
    assert gpu["power_watts"]["unit"] == "watts"
    assert gpu["power_watts"]["fields"] == ["power_watts", "power_watts_min", "power_watts_max"]
    assert all(m["unit"] and m["help"] for f in document for m in f["metrics"])
    page = talla_agent("metrics").out
    assert all(name in page for name in gpu)


# Stores that cannot be used


def test_a_store_of_a_newer_version_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(NEWER)
    connection.close()
    before = path.read_bytes()
    for command in (
        ("run", "--simulate", "chatbot", "--store", path),
        ("simulate", "--scenario", "chatbot", "--days", "1", "--store", path),
    ):
        refused = talla_agent(*command)
        assert refused.code == 1
        assert "newer Talla" in refused.complaint()
        assert str(path) in refused.complaint()
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"x"])
def test_a_file_that_is_no_store_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    refused = talla_agent("run", "--simulate", "chatbot", "--store", path)
    assert refused.code == 1
    assert f"{path}: is no Talla store" in refused.complaint()
    assert path.read_bytes() == content


def test_another_programs_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    before = path.read_bytes()
    refused = talla_agent("run", "--simulate", "chatbot", "--store", path)
    assert refused.code == 1
    assert "is no Talla store" in refused.complaint()
    assert path.read_bytes() == before


def test_an_absent_folder_is_named(tmp_path: Path) -> None:
    refused = talla_agent("run", "--simulate", "chatbot", "--store", tmp_path / "no" / "agent.db")
    assert refused.code == 1
    assert str(tmp_path / "no") in refused.complaint()


def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "sealed"
    folder.mkdir()
    folder.chmod(0o555)
    arguments = [sys.executable, "-m", "agent.cli", "run", "--simulate", "chatbot"]
    done = subprocess.run(
        [*held_back(), *arguments, "--store", str(folder / "agent.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "cannot be written (Permission denied)" in line
    assert list(folder.iterdir()) == []


def test_simulated_samples_do_not_go_into_the_machines_own_store() -> None:
    refused = talla_agent("run", "--simulate", "chatbot")
    assert refused.code == 1
    assert "give --store FILE" in refused.complaint()


# simulate


def test_simulate_fills_a_store_until_the_time_given(tmp_path: Path) -> None:
    path = tmp_path / "sim.db"
    done = talla_agent(
        *("simulate", "--scenario", "chatbot", "--days", "0.25", "--store", path),
        *("--until", "2026-03-01T12:00:00Z"),
    )
    assert done.code == 0
    assert "SIMULATED" in done.out
    assert done.err == ""
    with StoreReader(path) as store:
        (host,) = store.hosts()
        end = 1772366400
        assert store.span(host, 300) == (end - 6 * 3600, end)
        assert store.span(host, 10) == (end - 600, end)
        inventory = store.inventory(host)
        assert inventory is not None
        assert len(inventory["gpus"]) == 8


@pytest.mark.parametrize("until", ["yesterday", "2026-13-01"])
def test_simulate_refuses_a_time_that_is_none(tmp_path: Path, until: str) -> None:
    arguments = ("--scenario", "chatbot", "--days", "1", "--store", tmp_path / "x.db")
    refused = talla_agent("simulate", *arguments, "--until", until)
    assert refused.code == 2
    assert "2026-03-01T12:00:00Z" in refused.err


def test_simulate_names_what_is_wrong_with_a_scenario(tmp_path: Path) -> None:
    arguments = ("--days", "1", "--store", tmp_path / "x.db")
    absent = talla_agent("simulate", "--scenario", "nowhere", *arguments)
    assert absent.code == 1
    assert "chatbot" in absent.complaint()
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('extends = "chatbot"\nseeed = 3\n')
    refused = talla_agent("simulate", "--scenario", wrong, *arguments)
    assert refused.code == 1
    assert "seeed" in refused.complaint()
    assert not (tmp_path / "x.db").exists()


def test_simulate_shows_a_bar_on_a_terminal_alone(tmp_path: Path) -> None:
    import pty

    master, slave = pty.openpty()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "agent.cli", "simulate", "--scenario", "chatbot"),
            *("--days", "3", "--store", str(tmp_path / "x.db")),
        ],
        stdout=subprocess.DEVNULL,
        stderr=slave,
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(master)
    assert process.wait(60) == 0
    assert b"%" in shown
    assert "█".encode() in shown


# doctor


def test_doctor_without_a_driver_says_what_to_do_and_is_content(tmp_path: Path) -> None:
    quiet = {"LD_LIBRARY_PATH": "", "NO_COLOR": "1"}
    config = tmp_path / "agent.toml"
    config.write_text(f"[store]\npath = '{tmp_path / 'agent.db'}'\n")
    done = talla_agent("doctor", "--config", config, environment=quiet)
    assert done.code == 0
    assert "\x1b" not in done.out
    assert done.err == ""
    document = talla_agent("doctor", "--json", "--config", config, environment=quiet).json()
    assert document["can_sample"] is True
    checks = {check["check"]: check for check in document["checks"]}
    assert checks["host"]["status"] == "ok"
    if checks["gpu driver"]["status"] != "ok":  # no GPU here
        assert checks["gpu driver"]["status"] == "problem"
        assert "install NVIDIA's driver" in checks["gpu driver"]["remedy"]
    assert checks["daemon"]["status"] == "absent"
    assert checks["influxdb"]["status"] == "absent"


def test_doctor_sees_a_running_daemon(tmp_path: Path) -> None:
    config = tmp_path / "agent.toml"
    path = tmp_path / "agent.db"
    config.write_text(f"[store]\npath = '{path}'\n")
    talla_agent(
        *("simulate", "--scenario", "chatbot", "--days", "0.01", "--store", path),
        *("--until", str(time.time())),
    )
    with Store(path):
        document = talla_agent("doctor", "--json", "--config", config).json()
    checks = {check["check"]: check for check in document["checks"]}
    assert "its newest window ended" in checks["daemon"]["text"]
    assert json.dumps(checks["store"]).count("agent.db") == 1
