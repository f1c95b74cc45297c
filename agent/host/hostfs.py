"""The only way to /proc, /sys and mounts, under a root that a test may set to a fixture tree.

psutil has many of these readings, but its root is one global of the process, reaches /proc alone,
and it opens and parses whole files for each value (measured: 60 µs for the memory's numbers, 4 µs
for a read of an open file), so nothing here goes through it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_CHUNK = 65536
_LIMIT = 4 << 20
"""No file of /proc that is read here is longer on a working machine."""


class HostFs:
    """Files of the host, by their usual absolute paths.

    Bytes that are no UTF-8 come back as `\\xff` escapes, so that no name can stop a reading.
    Everything raises OSError as the system does, unless it says otherwise.
    """

    __slots__ = ("root",)

    def __init__(self, root: str | os.PathLike[str] = "/") -> None:
        self.root = os.fspath(root).rstrip("/")

    def path(self, path: str) -> str:
        """Where the file lies for the system."""
        return self.root + path

    def bytes(self, path: str, limit: int = _LIMIT) -> bytes:
        """The content of a file, at most `limit` bytes of it."""
        fd = os.open(self.root + path, _FLAGS)
        try:
            return _read(fd, limit)
        finally:
            os.close(fd)

    def text(self, path: str, limit: int = _LIMIT) -> str:
        """The content of a file as text, without blanks and line ends around it."""
        return decode(self.bytes(path, limit)).strip()

    def maybe(self, path: str) -> str | None:
        """The text of a file, None where it is absent, empty or cannot be read."""
        try:
            return self.text(path) or None
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        """The whole number that a file holds, None where it holds none or cannot be read."""
        text = self.maybe(path)
        try:
            return int(text) if text is not None else None
        except ValueError:
            return None

    def names(self, path: str) -> list[str]:
        """The names in a directory in order; none where it is absent or closed to us."""
        try:
            return sorted(os.listdir(self.root + path))
        except OSError:
            return []

    def exists(self, path: str) -> bool:
        """Whether there is something (a link that leads nowhere is there)."""
        return os.path.lexists(self.root + path)

    def link(self, path: str) -> str | None:
        """What a symbolic link says, None where there is none or it is closed to us."""
        try:
            return os.readlink(self.root + path)
        except OSError:
            return None

    def opened(self, pid: int, most: int) -> list[str]:
        """What the file descriptors of a process lead to, at most so many.

        Raises ProcessLookupError where it is gone, PermissionError where it may not be looked into.
        """
        folder = f"/proc/{pid}/fd"
        names = self.names(folder)
        if not names:
            if not self.exists(folder):
                raise ProcessLookupError(3, "is gone", f"/proc/{pid}")
            raise PermissionError(13, "may not be looked into", folder)
        links = (self.link(f"{folder}/{name}") for name in names[:most])
        return [link for link in links if link is not None]

    def target(self, path: str) -> str:
        """The path with its last link followed, if it is one, and `..` resolved in words.

        Links of sysfs are relative and lead to real directories, so words are enough.
        """
        link = self.link(path)
        if link is None:
            return path
        return os.path.normpath(os.path.join(os.path.dirname(path), link))

    def size(self, path: str) -> tuple[int, int]:
        """Size and use of the file system mounted there, in bytes, as df(1) counts them.

        May block for as long as the file system's server does: never call it within a tick.
        """
        stat = os.statvfs(self.root + path)
        return stat.f_blocks * stat.f_frsize, (stat.f_blocks - stat.f_bfree) * stat.f_frsize

    def kept(self, path: str) -> KeptFile:
        """A file that is read again and again through one descriptor."""
        return KeptFile(self.root + path)


class KeptFile:
    """A file of /proc or /sys that stays open: each read begins at its start anew."""

    __slots__ = ("_fd", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1

    def read(self, limit: int = _LIMIT) -> bytes:
        """The content now. Raises OSError; the next read then opens the file anew."""
        return self._get(_read, limit)

    def record(self, limit: int = 16384) -> bytes:
        """The content of a file that the kernel gives as one record, in one call.

        So are attributes of sysfs and what uses single_open: /proc/stat, meminfo, loadavg,
        pressure, PID/stat, PID/io. Lists (vmstat, mountinfo, mountstats) are not. Raises OSError.
        """
        return self._get(_read_once, limit)

    def _get(self, reading: Callable[[int, int], bytes], limit: int) -> bytes:
        if self._fd < 0:
            self._fd = os.open(self.path, _FLAGS)
        try:
            return reading(self._fd, limit)
        except OSError as error:
            self.close()
            error.filename = error.filename or self.path
            raise

    def close(self) -> None:
        """Lets go of the descriptor; a later read takes a new one."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


def decode(raw: bytes) -> str:
    """Text of the system, whatever its bytes."""
    return raw.decode("utf-8", "backslashreplace")


def unescape(field: str) -> str:
    """A field of a mount table with its octal escapes (`\\040` is a blank) resolved."""
    if "\\" not in field:
        return field
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field


def number_after(data: bytes, label: bytes) -> int | None:
    """The whole number that follows `label` in `data`, None where there is none.

    Much cheaper than taking all lines apart for the few that are wanted.
    """
    at = data.find(label)
    if at < 0:
        return None
    at += len(label)
    end = data.find(b"\n", at)
    words = data[at : end if end >= 0 else None].split(None, 1)
    return int(words[0]) if words and words[0].isdigit() else None


def _read(fd: int, limit: int) -> bytes:
    # A seq_file gives about a page at a time and less before a long line (an overlay's mount
    # options, say): only an empty read is the end.
    chunk = os.pread(fd, min(_CHUNK, limit), 0)
    parts: list[bytes] = []
    offset = 0
    while chunk:
        parts.append(chunk)
        offset += len(chunk)
        if offset >= limit:
            break
        chunk = os.pread(fd, min(_CHUNK, limit - offset), offset)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _read_once(fd: int, limit: int) -> bytes:
    return os.pread(fd, limit, 0)
