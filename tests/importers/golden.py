"""Golden folders: logs, the arguments, and what must come of them.

A folder in `cases` holds `arguments` (of `talla-advisor import`, without `--store`; FILE names
are those of the folder) and `expected.json`: `exit`, `output` and `error` (parts of what is
printed), `windows` (how many of each tier, by host), `rows` (fields of rows of 5-minute windows,
by host, place of the window and key; null is absence) and `inventory` (by host).
"""

from __future__ import annotations

import contextlib
import io
import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.cli import main
from telemetry.store import StoreReader
from telemetry.window import Window


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run printed and left."""

    code: int
    output: str
    error: str
    windows: list[Window]


def run_import(case: Path, store: Path) -> Outcome:
    """Runs the case's import into `store`."""
    words = shlex.split((case / "arguments").read_text())
    arguments = [str(case / w) if (case / w).is_file() else w for w in words]
    output, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(error):
        try:
            code = main(["--debug", "import", *arguments, "--store", str(store)])
        except SystemExit as stopped:  # argparse
            code = int(stopped.code or 0)
    return Outcome(code, output.getvalue(), error.getvalue(), windows_of(store))


def windows_of(store: Path) -> list[Window]:
    """All windows of a store, by host, tier and time."""
    if not store.exists():
        return []
    with StoreReader(store) as reader:
        windows = [w for _, w in reader.windows_after(0, 1_000_000)]
    return sorted(windows, key=lambda w: (w.host, w.tier, w.start))


def expected_of(case: Path) -> dict[str, Any]:
    """The case's expectations."""
    expected: dict[str, Any] = json.loads((case / "expected.json").read_text())
    return expected
