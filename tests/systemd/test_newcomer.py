"""A newcomer's path: a Debian with nothing on it, this machine's network, and the pages' commands.

`make verify-systemd` runs it. Somebody who may use sudo types every command of README.md and of
docs/install.md, in order; then an older version is installed, and this one over it.
"""

import re
import shlex
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from tests.docs.commands import ROOT, commands
from tests.require import need, need_program
from tests.systemd.machine import Machine, obstacle

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

OLDER = "c22d36c"
"""One of the first commits that could be installed: fewer metrics, and no memory in the store."""
NETWORK = ("resolv.conf", "hosts", "apt", "pip.conf", "xdg/pip", "ssl/certs/ca-certificates.crt")
"""What below /etc makes downloads work here."""
UNTIL_STOPPED = 13
STORE = "/var/lib/talla/agent.db"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a Debian 12 as its installer leaves it: no make, no Python, no compiler."""
    why = obstacle()
    need(why is None, "systemd", why or "")
    debootstrap = need_program("debootstrap", "debootstrap")
    sources = "\n".join(p.read_text() for p in Path("/etc/apt").rglob("*.sources"))
    sources += "\n".join(p.read_text() for p in Path("/etc/apt").rglob("*.list"))
    found = re.search(r"^(?:URIs:|deb(?: \[.*\])?) +(\S+/debian/?)\s", sources, re.MULTILINE)
    mirror = [found[1]] if found else []  # debootstrap knows Debian's own
    folder = tmp_path_factory.mktemp("tree")
    some = "--include=systemd,dbus,sudo,ca-certificates"
    command = [str(debootstrap), "--variant=minbase", some, "bookworm", str(folder), *mirror]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr
    for name in NETWORK:
        here, there = Path("/etc", name), folder / "etc" / name
        if here.is_dir():
            shutil.copytree(here, there, dirs_exist_ok=True)
        elif here.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here, there)
    return folder


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, tree: Path) -> Iterator[Machine]:
    git = need_program("git", "git")
    sources = tmp_path_factory.mktemp("sources")
    for name, of in (("talla", None), ("older", OLDER)):
        unpack(git, of, sources / name)
    booted = Machine(tmp_path_factory.mktemp("machine"), sources, tree)
    try:
        booted.run("apt-get update -qq", timeout=300)
        booted.run("useradd -m -s /bin/bash -G sudo ana")
        booted.write("/etc/sudoers.d/ana", "ana ALL=(ALL) NOPASSWD: ALL\n", "440")
        booted.run("cp -r talla older /home/ana && chown -R ana: /home/ana")
        log = ROOT / "tests/importers/cases/smi_units/smi.csv"
        booted.write("/home/ana/talla/smi.csv", log.read_text())
        yield booted
    finally:
        booted.down()


def unpack(git: Path, commit: str | None, folder: Path) -> None:
    """The files of a commit, or those that are here."""
    folder.mkdir()
    if commit is not None:
        made = subprocess.run([git, "archive", commit], cwd=ROOT, capture_output=True, check=False)
        need(made.returncode == 0, "git history", "git fetch --unshallow")
        with tarfile.open(fileobj=BytesIO(made.stdout)) as packed:
            packed.extractall(folder, filter="data")
        return
    listed = [str(git), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, names.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def types(machine: Machine, command: str, folder: str = "talla") -> str:
    """Ana types a command; what it prints."""
    if " run " in command:
        command = f"timeout --preserve-status --signal TERM {UNTIL_STOPPED} {command}"
    line = shlex.quote(f"cd {folder} && {command}")
    began = time.monotonic()
    done = machine.run(f"runuser -l ana -c {line} 2>&1", timeout=900)
    print(f"{time.monotonic() - began:6.1f} s  $ {command}")
    return done.stdout


def test_every_command_of_the_readme(machine: Machine) -> None:
    typed = commands((ROOT / "README.md").read_text("utf-8"))
    assert typed
    for command in typed:
        types(machine, command)
    assert machine.show("talla-agent", "ActiveState") == "active"
    assert machine.show("talla-advisor", "ActiveState") == "active"
    machine.run("test -s /home/ana/talla/report/report.html")
    machine.run("test -s /home/ana/talla/build/demo/report/report.html")


def test_every_command_of_the_page_of_installation(machine: Machine) -> None:
    for command in commands((ROOT / "docs/install.md").read_text("utf-8")):
        types(machine, command)
        if command == "sudo make install":
            assert machine.show("talla-agent", "ActiveState") == "active"
    left = machine.out("find /etc /opt /usr /var -xdev -name '*talla*' -not -path '/var/log/*'")
    assert left == ""


PREPARED = "sudo apt-get install -y make python3 python3-venv"


def test_the_steps_that_are_printed_install_it_by_hand(machine: Machine) -> None:
    types(machine, PREPARED)
    types(machine, "make -s install DRY_RUN=1 > steps && sudo bash -euo pipefail steps")
    assert machine.show("talla-agent", "ActiveState") == "active"
    assert machine.show("talla-advisor", "ActiveState") == "active"
    types(machine, "make -s uninstall DRY_RUN=1 > steps && sudo bash -euo pipefail steps")
    assert machine.run("test -e /opt/talla", check=False).returncode == 1


def test_over_an_older_version(machine: Machine) -> None:
    types(machine, PREPARED)
    types(machine, "sudo make install", "older")
    older = machine.out("readlink /opt/talla/current")
    machine.until("a window of the older version", lambda: number(machine, WINDOWS) > 0)
    machine.run("echo '# mine' >> /etc/talla/agent.toml")
    settings = machine.out("cat /etc/talla/agent.toml /etc/talla/advisor.toml")
    columns = number(machine, COLUMNS)

    types(machine, "sudo make install")

    assert machine.out("readlink /opt/talla/current") != older
    assert machine.out("cat /etc/talla/agent.toml /etc/talla/advisor.toml") == settings
    copied = number(machine, WINDOWS, "/var/backups/talla/store/agent.db")
    assert copied > 0
    machine.until("a window of this version", lambda: number(machine, WINDOWS) > copied)
    assert number(machine, COLUMNS) > columns
    assert number(machine, COLUMNS, "/var/backups/talla/store/agent.db") == columns
    assert machine.show("talla-agent", "NRestarts") == "0"


WINDOWS = "SELECT count(*) FROM window"
COLUMNS = 'SELECT count(*) FROM pragma_table_info("m_gpu")'


def number(machine: Machine, query: str, store: str = STORE) -> int:
    """What a store answers; 0 before there is one."""
    code = f"import sqlite3; print(sqlite3.connect('{store}').execute('{query}').fetchone()[0])"
    done = machine.run(f"python3 -c {shlex.quote(code)}", check=False)
    return int(done.stdout or 0)
