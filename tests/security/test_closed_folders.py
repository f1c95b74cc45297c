"""What lies in a folder that the user may not look into is told in one line that names it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.require import held_back

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/importers/cases/smi_units/smi.csv"

COMMANDS = {
    "import_from": "advisor import {closed}/a.csv --store {open}/b.db",
    "import_into": f"advisor import {LOG} --store {{closed}}/a.db",
    "report": "advisor report --store {closed}/a.db",
    "report_to": "advisor report --store {open}/a.db -o {closed}/report",
    "settings": "advisor report --store {open}/a.db --config {closed}/advisor.toml",
    "plan": "advisor plan --model {closed}/config.json",
    "plan_folder": "advisor plan --model {closed}",
    "evaluate": "advisor evaluate {closed}",
    "check": "advisor check --inventory {closed}/i.json",
    "top": "advisor top --store {closed}/a.db",
    "phases": "advisor phases --store {closed}/a.db",
    "agent_settings": "agent run --config {closed}/agent.toml",
    "run": "agent run --simulate chatbot --store {closed}/a.db",
    "simulate": "agent simulate --scenario chatbot --days 1 --store {closed}/a.db",
    "rules": "agent rules --rules {closed}/rules.toml",
    "record": "agent record {closed}/recording",
}


def run(line: str) -> subprocess.CompletedProcess[str]:
    """A command of one who is held back by permissions, be it root."""
    program, *arguments = line.split()
    return subprocess.run(
        [*held_back(), sys.executable, "-m", f"{program}.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    folders = {"open": tmp_path / "open", "closed": tmp_path / "closed"}
    for folder in folders.values():
        folder.mkdir()
    for name in ("a.csv", "a.db", "config.json"):
        (folders["closed"] / name).write_text("")
    assert run(f"advisor import {LOG} --store {folders['open']}/a.db").returncode == 0
    folders["closed"].chmod(0)
    return folders


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_folder_that_is_closed_is_named(name: str, folders: dict[str, Path]) -> None:
    done = run(COMMANDS[name].format(**folders))
    assert done.returncode != 0
    (line,) = done.stderr.splitlines()
    assert str(folders["closed"]) in line
    assert "unexpected" not in line


def test_a_state_of_others_is_left_alone(folders: dict[str, Path]) -> None:
    """On a server with the service, who has a store of their own judges it all the same."""
    settings = folders["open"] / "advisor.toml"
    settings.write_text(f'[service]\nstate = "{folders["closed"]}/advisor.db"\n')
    done = run(f"advisor phases --store {folders['open']}/a.db --config {settings}")
    assert (done.returncode, done.stderr) == (0, "")
