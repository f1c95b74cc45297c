"""A recording played back: the samples that the recorded machine gave."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agent.config.settings import Settings
from agent.host.hostfs import HostFs
from agent.machine import MachineSource
from agent.nvml.client import NvmlClient
from agent.once import document, take
from agent.recording import REPLAY_VARIABLE
from telemetry.clock import ManualClock


class _ReplayedHostFs(HostFs):
    """The recorded files; sizes of file systems are those that were told."""

    __slots__ = ("_sizes",)

    def __init__(self, root: Path, sizes: dict[str, tuple[int, int]]) -> None:
        super().__init__(root)
        self._sizes = sizes

    def size(self, path: str) -> tuple[int, int]:
        if path not in self._sizes:
            raise FileNotFoundError(2, "was not recorded", path)
        return self._sizes[path]


class Replay:
    """The machine of a recording, in `scratch`; `clock` passes to the second sample by itself."""

    def __init__(self, recording: Path, scratch: Path) -> None:
        self._recording = recording
        self._root = scratch / "root"
        shutil.copytree(recording / "host" / "1", self._root, symlinks=True)
        told = json.loads((recording / "host.json").read_text("utf-8"))["sizes"]
        sizes = {path: (int(size[0]), int(size[1])) for path, size in told.items()}
        self.clock = _Steps(self._second)
        environment = {**os.environ, REPLAY_VARIABLE: str(recording / "nvml.jsonl")}
        client = partial(NvmlClient, environment=environment, clock=self.clock.monotonic)
        hostfs = _ReplayedHostFs(self._root, sizes)
        self.source = MachineSource(Settings(), "host", hostfs=hostfs, patience=None, nvml=client)

    def _second(self) -> None:
        # In place, since files that are read again and again stay open.
        second = self._recording / "host" / "2"
        for path in sorted(second.rglob("*")):
            place = self._root / path.relative_to(second)
            if path.is_symlink() or not path.is_file():
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())


class _Steps(ManualClock):
    def __init__(self, second: Callable[[], None]) -> None:
        super().__init__()
        self._second = second

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._second()


def told_again(recording: Path) -> str:
    """What `talla-agent once --json` says of a recorded machine, with keys in order."""
    with tempfile.TemporaryDirectory() as scratch:
        replay = Replay(recording, Path(scratch))
        try:
            sample = take(replay.source, replay.clock)
            told = document(replay.source, sample, "host")
        finally:
            replay.source.close()
    del told["time"]
    return json.dumps(told, indent=1, sort_keys=True) + "\n"
