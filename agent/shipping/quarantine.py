"""Lines that a server refused, kept on disk with its words."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

_LOG = logging.getLogger(__name__)
_PARTS = 8


class Quarantine:
    """A folder of `refused-*.lp` files: line protocol, each line below a comment with the reason.

    Once the cause is mended they can be written to the server as they are. Together they take at
    most about `limit` bytes; the oldest go first.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit

    def keep(self, refused: Sequence[tuple[bytes, str]], now: float) -> Path:
        """Adds lines, each with the server's words; returns the file. Raises OSError."""
        self._folder.mkdir(mode=0o750, exist_ok=True)
        files = self._files()
        part = self._limit // _PARTS
        if files and files[-1].stat().st_size < part:
            path = files[-1]
        else:
            stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%S")
            path = self._folder / f"refused-{stamp}-{len(files):03}.lp"
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
        with os.fdopen(descriptor, "wb") as file:
            for line, reason in refused:
                words = " ".join(reason.split())
                file.write(b"# " + words.encode("utf-8", "backslashreplace") + b"\n" + line + b"\n")
        self._trim()
        return path

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("refused-*.lp"))

    def _trim(self) -> None:
        files = self._files()
        total = sum(file.stat().st_size for file in files)
        for file in files[:-1]:
            if total <= self._limit:
                return
            total -= file.stat().st_size
            file.unlink()
            _LOG.warning("%s: deleted, the quarantine is full", file)
