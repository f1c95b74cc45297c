"""A recording of one machine: the files that were read and NVML's answers, secrets removed.

A folder with `host/1` and `host/2` (the files of /proc and /sys as they were at the first and at
the second of two samples one second apart), `host.json` (what is no file: sizes, empty folders)
and `nvml.jsonl` (one call of NVML a line). `agent.replay` gives the same samples from it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

from agent.host.hostfs import HostFs, KeptFile
from telemetry.workload import redact

RECORD_VARIABLE, REPLAY_VARIABLE = "TALLA_NVML_RECORD", "TALLA_NVML_REPLAY"
"""Tell the NVML child the file in which it notes its calls, or from which it answers them."""
_ADDRESS = re.compile(rb"\b(?:\d{1,3}\.){3}\d{1,3}\b")
_SERVER = re.compile(rb"(?<=[\s])([A-Za-z0-9][\w.\-]*):(?=/)")
_HARDWARE = re.compile(rb"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b", re.IGNORECASE)


class Scrubber:
    """Takes out what names people, machines and secrets; the same name becomes the same word."""

    def __init__(self, host: str) -> None:
        self._host = host.encode()
        self._known: dict[bytes, bytes] = {}

    def clean(self, path: str, content: bytes) -> bytes:
        """The content of a file as it may be passed on."""
        if path.endswith("/cmdline"):
            command = content.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
            content = redact(command).encode()
        elif path == "/etc/passwd":
            users = [line.split(b":") for line in content.splitlines()]
            lines = (b"user%s:x:%s:%s::/:\n" % (u[2], u[2], u[2]) for u in users if len(u) > 3)
            content = b"".join(lines)
        elif path.endswith(("/mountinfo", "/mountstats", "/Stats")):
            content = _SERVER.sub(lambda m: self._word(m[1], b"server%d") + b":", content)
        content = _ADDRESS.sub(lambda m: self._word(m[0], b"192.0.2.%d"), content)
        content = _HARDWARE.sub(b"02:00:00:00:00:00", content)
        if len(self._host) > 2:
            content = content.replace(self._host, b"host")
        return content

    def _word(self, name: bytes, form: bytes) -> bytes:
        return self._known.setdefault(name, form % (len(self._known) + 1))


class RecordingHostFs(HostFs):
    """Copies every file that is read into the recording."""

    __slots__ = ("_folder", "_scrubber", "sizes", "step")

    def __init__(self, folder: Path, scrubber: Scrubber) -> None:
        super().__init__("/")
        self._folder = folder
        self._scrubber = scrubber
        self.sizes: dict[str, tuple[int, int]] = {}
        self.step = 1
        """Which of the two samples is taken."""

    def keep(self, path: str, content: bytes) -> None:
        """Puts what was read into the recording."""
        place = self._place(path)
        if not place.is_dir():
            place.write_bytes(self._scrubber.clean(path, content))

    def bytes(self, path: str, limit: int = 4 << 20) -> bytes:
        content = super().bytes(path, limit)
        self.keep(path, content)
        return content

    def names(self, path: str) -> list[str]:
        names = super().names(path)
        if os.path.isdir(path):
            self._place(f"{path}/.")
            for name in names:
                self._mention(f"{path}/{name}")
        return names

    def exists(self, path: str) -> bool:
        there = super().exists(path)
        if there:
            self._mention(path)
        return there

    def link(self, path: str) -> str | None:
        link = super().link(path)
        if link is not None:
            self._mention(path)
        return link

    def size(self, path: str) -> tuple[int, int]:
        self.sizes[path] = super().size(path)
        return self.sizes[path]

    def kept(self, path: str) -> KeptFile:
        return _RecordedFile(self, path)

    def _mention(self, path: str) -> None:
        """Has something in its place: the link, a folder, or a file that nobody has read yet."""
        place = self._place(path)
        if os.path.lexists(place):
            return
        if os.path.islink(path):
            place.symlink_to(os.readlink(path))
        elif os.path.isdir(path):
            place.mkdir()
        elif self.step == 1:
            place.touch()

    def _place(self, path: str) -> Path:
        """Where a file lies in the recording: behind the links on its way, which are kept too."""
        folder, name = os.path.split(path)
        real = os.path.realpath(folder)
        place = self._folder / str(self.step) / real.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        while folder not in ("/", "", real):
            if os.path.islink(folder):
                above = os.path.realpath(os.path.dirname(folder)).lstrip("/")
                link = self._folder / str(self.step) / above / os.path.basename(folder)
                link.parent.mkdir(parents=True, exist_ok=True)
                if not os.path.lexists(link):
                    link.symlink_to(os.readlink(folder))
            folder = os.path.dirname(folder)
        return place / name if name != "." else place


class _RecordedFile(KeptFile):
    __slots__ = ("_recorder",)

    def __init__(self, recorder: RecordingHostFs, path: str) -> None:
        super().__init__(path)
        self._recorder = recorder

    def _get(self, reading: Callable[[int, int], bytes], limit: int) -> bytes:
        content = super()._get(reading, limit)
        self._recorder.keep(self.path, content)
        return content


def write_sizes(folder: Path, sizes: dict[str, tuple[int, int]]) -> None:
    """`host.json`."""
    document = {"sizes": {path: list(size) for path, size in sorted(sizes.items())}}
    (folder / "host.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
