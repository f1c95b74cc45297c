"""A wheel built from the sdist holds every file of the three packages, and nothing else."""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.require import need, need_program

ROOT = Path(__file__).parents[2]
PACKAGES = ("telemetry", "agent", "advisor")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    # The sdist, and from it the wheel: what either lacks is missed here.
    command = [sys.executable, "-m", "build", "--no-isolation", "-o"]
    built = subprocess.run([*command, folder, ROOT], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    [path] = folder.glob("talla-*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


def test_it_holds_the_packages_whole(wheel: zipfile.ZipFile) -> None:
    git = need_program("git", "git")
    need((ROOT / ".git").exists(), "git checkout", "run the tests in a clone of the repository")
    listed = subprocess.run(
        [git, "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert held == wanted


def test_it_has_both_commands_and_the_licence(wheel: zipfile.ZipFile) -> None:
    [entry_points] = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    commands = wheel.read(entry_points).decode()

    assert "talla-agent = agent.cli:main" in commands
    assert "talla-advisor = advisor.cli:main" in commands
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())
