"""The mutation run: each line that stands against a fault is taken away, and a test must notice.

`python -m tests.survival.mutation` prints docs/survival-proof.md; exit code 1 where a test stays
green. The tree is copied first, so that nothing here is changed; `--only TEXT` runs the faults
whose name holds the text.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("agent", "telemetry", "tests", "pyproject.toml")
_SECONDS = 60
_HEAD = """\
# What each test of survival notices

Written by `make verify-survival`: each line was taken away (or made wrong) in a copy of the tree.
With all lines in place every one of these tests passes.

| fault | line | its test without it |
|---|---|---|"""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One entry of mutations.toml. Without `becomes` the line is simply gone."""

    fault: str
    file: str
    line: str
    test: str
    becomes: str = "pass"

    def apply(self, root: Path) -> str:
        """Changes the file below `root`; returns what it was. Raises ValueError where the line is
        not there exactly once."""
        path = root / self.file
        before = path.read_text("utf-8")
        found = before.count(self.line)
        if found != 1:
            raise ValueError(f"{self.file}: {self.line.strip()!r} is there {found} times")
        path.write_text(before.replace(self.line, self.becomes), "utf-8")
        return before


def mutations() -> list[Mutation]:
    """Those of mutations.toml."""
    text = Path(__file__).with_name("mutations.toml").read_text("utf-8")
    return [Mutation(**entry) for entry in tomllib.loads(text)["mutation"]]


def noticed(mutation: Mutation, root: Path) -> str:
    """How the test ended in the changed tree: "passed" is what must not be."""
    before = mutation.apply(root)
    try:
        ended = _run((mutation.test,), root, _SECONDS)
    except subprocess.TimeoutExpired:
        return f"still running after {_SECONDS} s"
    finally:
        (root / mutation.file).write_text(before, "utf-8")
    if ended.returncode == 0:
        return "passed"
    if ended.returncode != 1:  # no test was run
        raise ValueError(f"{mutation.test}: {_end(ended)}")
    return "failed"


def _run(
    tests: Iterable[str], root: Path, seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*command, *tests],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def _end(ended: subprocess.CompletedProcess[str]) -> str:
    return (ended.stdout + ended.stderr).strip()[-500:]


def _copy(root: Path) -> None:
    for name in _COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, root / name, ignore=ignored, symlinks=True)
        else:
            shutil.copy(ROOT / name, root / name)


def main() -> int:
    """Exit code 1 where a line can go unnoticed, or a test fails with the line in its place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="faults whose name holds this text")
    wanted = parser.parse_args().only
    chosen = [mutation for mutation in mutations() if wanted in mutation.fault]
    unnoticed = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _copy(root)
        whole = _run(dict.fromkeys(mutation.test for mutation in chosen), root)
        if whole.returncode:
            print(f"with every line in its place: {_end(whole)}", file=sys.stderr)
            return 1
        print(_HEAD)
        for mutation in chosen:
            how = noticed(mutation, root)
            unnoticed += how == "passed"
            line = " ".join(mutation.line.split()).replace("|", "\\|")
            file, _, test = mutation.test.partition("::")
            print(
                f"| {mutation.fault} | `{mutation.file}`: `{line}` | {how}: `{test}` (`{file}`) |",
                flush=True,
            )
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
