"""A FUSE file system that shows a folder, each read of which takes its time.

python tests/staging/slow_fuse.py FOLDER MOUNT SECONDS
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import mfusepy


class Slow(mfusepy.Operations):  # type: ignore[misc]
    """The files of a folder, to be read."""

    def __init__(self, folder: str, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        found = os.lstat(self._folder + path)
        names = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid", "st_mtime", "st_atime")
        return {name: getattr(found, name) for name in (*names, "st_ctime")}

    def readdir(self, path: str, fh: int) -> Any:
        return [".", "..", *os.listdir(self._folder + path)]

    def open(self, path: str, flags: int) -> int:
        return os.open(self._folder + path, os.O_RDONLY)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        time.sleep(self._seconds)
        return os.pread(fh, size, offset)

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0


if __name__ == "__main__":
    source, mount, pause = sys.argv[1:]
    mfusepy.FUSE(
        Slow(source, float(pause)), mount, foreground=True, fsname="bucket", subtype="slowfs"
    )
