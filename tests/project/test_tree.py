"""What a reader of the repository would trip over: dead links, absent targets, files too long."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.require import need_program

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)")
MAKE = re.compile(r"`make ([a-z][a-z-]*)|^\$ make ([a-z][a-z-]*)", re.MULTILINE)
LONGEST_LINES = 420


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_links_to_what_is_there(page: Path) -> None:
    targets = LINK.findall(page.read_text())
    absent = [target for target in targets if not (page.parent / target).exists()]
    assert absent == []


def test_make_lists_every_target_that_the_docs_name() -> None:
    make = need_program("make", "make")
    listed = subprocess.run(
        [make, "-s", "--no-print-directory", "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    targets = {line.split()[0] for line in listed.stdout.splitlines()}
    named = {first or second for page in PAGES for first, second in MAKE.findall(page.read_text())}

    assert {"setup", "run", "test", "check", "verify", "regen", "clean"} <= targets
    assert named - targets == set()


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = [int(page.name[:3]) for page in sorted((ROOT / "docs/decisions").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_no_file_is_too_long_to_be_one_thing() -> None:
    folders = ("telemetry", "agent", "advisor", "tests")
    lines = {
        name(path): path.read_text().count("\n")
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {path: count for path, count in lines.items() if count > LONGEST_LINES} == {}
