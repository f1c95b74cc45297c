"""Each command that a page tells to type is typed by a test."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.commands import ROOT, as_root, commands
from tests.require import need_program

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BY_US = {"README.md", "README.es.md"}
ELSEWHERE = {
    "docs/install.md": "tests/systemd/test_installed.py runs it in a real systemd",
    "docs/configuration.md": "the same commands stand in docs/install.md",
    "CONTRIBUTING.md": "its targets are those of CI; test_tree looks for them in the Makefile",
}


def told(page: Path) -> list[str]:
    return commands(page.read_text("utf-8"))


def test_no_page_tells_a_command_that_nobody_runs() -> None:
    names = {str(page.relative_to(ROOT)) for page in PAGES if told(page)}
    assert names <= BY_US | set(ELSEWHERE)


def test_the_page_of_settings_tells_what_install_tells() -> None:
    assert set(told(ROOT / "docs/configuration.md")) <= set(told(ROOT / "docs/install.md"))


@pytest.mark.parametrize("name", sorted(BY_US))
def test_the_commands_of_a_readme_work_in_order(name: str, tmp_path: Path) -> None:
    make = need_program("make", "make")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    log = ROOT / "tests/importers/cases/smi_units/smi.csv"
    (tmp_path / "smi.csv").write_bytes(log.read_bytes())
    for command in told(ROOT / name):
        if "apt-get" in command.split():
            continue  # tests/systemd/test_newcomer.py types it on a machine that lacks everything
        if "make" in command.split():
            # Run whole by CI (`make run`) and in a real systemd (`make install`): here, that make
            # knows the target.
            target = command.split()[-1]
            listed = subprocess.run(
                [make, "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True
            )
            assert re.search(rf"^{target}\b", listed.stdout, re.MULTILINE), command
            continue
        typed = as_root(command)
        if " run " in command:  # "until stopped": long enough for a first window
            typed = f"timeout --preserve-status --signal TERM 13 {command}"
        done = subprocess.run(
            ["bash", "-c", typed],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
    assert (tmp_path / "report/report.html").exists() or list(tmp_path.glob("informe/*.html"))


def test_troubleshooting_names_words_that_the_programs_say() -> None:
    sources = "\n".join(
        path.read_text("utf-8")
        for folder in ("telemetry", "agent", "advisor")
        for path in (ROOT / folder).rglob("*.py")
    )
    sources = re.sub(r'"\s*\n\s*f?"', "", sources)  # texts that go on in the next line
    page = (ROOT / "docs/troubleshooting.md").read_text("utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) >= 9
    for row in rows:
        for text in re.findall(r"`([^`]+)`", row):
            for words in filter(
                None, (part.strip(" .:") for part in re.split(r"\.\.\.|\(|\)", text))
            ):
                known = words in sources or words in {
                    "nvidia-smi",
                    "doctor",
                    "failed",
                    "404",
                    "curl",
                }
                assert known, f"nothing says {words!r}"
