"""A machine's /proc and /sys from a text file, and the collectors run on it.

A machine is a folder: `before.txt` has its files, `after.txt` those that are different one second
later, `expected.json` what is then read. In the texts `--- PATH` begins a file, `--- PATH -> LINK`
is a symbolic link, `--- PATH !` a file that is gone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.host.hostfs import HostFs
from telemetry.window import Sample

MACHINES = Path(__file__).parent / "machines"


def plant(root: Path, text: str) -> HostFs:
    """Put the files of `text` below `root`."""
    path: Path | None = None
    content: list[str] = []

    def finish() -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                path.unlink()
            path.write_bytes("".join(content).encode("utf-8", "surrogateescape"))

    for line in text.splitlines(keepends=True):
        if not line.startswith("--- "):
            content.append(line)
            continue
        finish()
        path, content = None, []
        name, arrow, link = line[4:].strip().partition(" -> ")
        if arrow:
            place = root / name.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(link)
        elif name.endswith(" !"):
            (root / name[:-2].lstrip("/")).unlink()
        else:
            path = root / name.lstrip("/")
    finish()
    return HostFs(root)


def described(sample: Sample) -> dict[str, Any]:
    """A sample as JSON, numbers to six digits."""
    rows = {" ".join(k): _rounded(row) for k, row in sorted(sample.rows.items())}
    texts = {" ".join(k): dict(sorted(t.items())) for k, t in sorted(sample.texts.items())}
    return {"rows": rows, "texts": texts}


def _rounded(row: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.6g}") for name, value in sorted(row.items())}


def golden(folder: Path, document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was read and what is expected, both as JSON gives them back."""
    read: dict[str, Any] = json.loads(json.dumps(document))
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
    return read, expected
