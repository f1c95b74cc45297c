"""The units as files: every key known, and exposed no more than was promised."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.require import need_program
from tests.systemd.attack import attempts
from tests.systemd.machine import ROOT

FOLDER = ROOT / "systemd"
SECURITY = (ROOT / "docs/security.md").read_text("utf-8")


def drop_in(folder: Path, service: str, option: str) -> None:
    """A drop-in beside a copy of a unit."""
    place = folder / f"{service}.d"
    place.mkdir()
    (place / "option.conf").write_text((FOLDER / "options" / option).read_text())


@pytest.mark.parametrize(
    ("service", "option", "most"),
    [
        ("talla-agent.service", None, 2.0),
        ("talla-agent.service", "agent-processes.conf", 2.5),
        ("talla-agent.service", "agent-shipping.conf", 2.0),
        ("talla-advisor.service", None, 1.5),
        ("talla-advisor.service", "advisor-network.conf", 1.5),
    ],
)
def test_a_unit_is_sound_and_little_exposed(
    tmp_path: Path, service: str, option: str | None, most: float
) -> None:
    analyze = need_program("systemd-analyze", "systemd")
    # The programs are not installed here; what is verified is the unit.
    unit = re.sub(
        r"^ExecStart=\S+", "ExecStart=/bin/true", (FOLDER / service).read_text(), flags=re.M
    )
    (tmp_path / service).write_text(re.sub(r"^Documentation=.*\n", "", unit, flags=re.M))
    if option is not None:
        drop_in(tmp_path, service, option)
    verified = subprocess.run(
        [analyze, "verify", "--man=no", tmp_path / service],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    rated = subprocess.run(
        [analyze, "security", "--offline=true", "--no-pager", tmp_path / service],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"exposure level for \S+: ([\d.]+)", rated.stdout)
    assert found is not None, rated.stdout + rated.stderr
    assert float(found[1]) <= most, rated.stdout
    version = subprocess.run([analyze, "--version"], capture_output=True, text=True, check=True)
    if version.stdout.startswith("systemd 252 "):  # others rate otherwise
        row = rf"^\|.*`{option or service}`.*\| {found[1]} \| {most} \|$"
        assert re.search(row, SECURITY, re.MULTILINE), f"docs/security.md: {row}"


def test_the_page_of_security_tells_of_each_attempt() -> None:
    table = SECURITY.split("| attempt | agent | advisor |")[1].split("\n\n")[0]
    told = {line.split("|")[1].strip() for line in table.splitlines()[2:]}
    assert told == set(attempts("", "", "")) - {"write its own state", "reach loopback"}


def test_each_protection_that_is_left_out_has_its_reason() -> None:
    agent = (FOLDER / "talla-agent.service").read_text()
    for left_out in (
        "PrivateDevices",
        "PrivateNetwork",
        "ProtectProc",
        "ProcSubset",
        "PrivateUsers",
    ):
        assert re.search(rf"^# Not .*{left_out}=", agent, re.MULTILINE), left_out


def test_the_container_file_is_linted() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    linted = subprocess.run(
        [hadolint, FOLDER / "Containerfile"], capture_output=True, text=True, check=False
    )
    assert (linted.returncode, linted.stdout) == (0, "")
