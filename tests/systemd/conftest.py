"""The machine on which Talla is installed, and the source from which it is."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.require import need, need_program
from tests.systemd.machine import ROOT, Machine, obstacle


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Talla's source, with `make wheels` done: there is no network inside the machine."""
    git = need_program("git", "git")
    make = need_program("make", "make")
    need((ROOT / ".git").exists(), "git checkout", "run the tests in a clone of the repository")
    folder = tmp_path_factory.mktemp("source")
    listed = subprocess.run(
        [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.split("\0"):
        if name and not name.startswith("tests/") and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    made = subprocess.run(
        [make, "-s", "wheels"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Iterator[Machine]:
    """A booted machine on which nothing of Talla is."""
    why = obstacle()
    need(why is None, "systemd", why or "")
    booted = Machine(tmp_path_factory.mktemp("machine"), source)
    try:
        yield booted
    finally:
        booted.down()
