"""The staged runs: what is slow in each, and what the advisor has to say about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.staging.stage import MIB, Run, Stage, disk_below

SECONDS = 130.0
"""How long the agent looks: some 25 readings of the processes."""


@dataclass(frozen=True)
class Scenario:
    """A run, and the cause that is to be named: None where nothing holds the GPU back.

    `play` gives the run, and the place at which the job waits, if it waits at one.
    """

    name: str
    cause: str | None
    play: Callable[[Stage, Path], tuple[Run, str | None]]


def _slow_disk(stage: Stage, library: Path) -> tuple[Run, str | None]:
    """A data set on a device that brings 12 MiB a second, and a GPU that could use 27."""
    mount, device = stage.loop_device(256 * MIB)
    data = stage.files(mount / "set", count=12, size=16 * MIB)
    stage.throttled(read=12 * MIB)
    return stage.run(library, SECONDS, 0.6, "--data", data), f"disk {device}"


def _slow_fuse(stage: Stage, library: Path) -> tuple[Run, str | None]:
    """A data set behind FUSE, each read of which takes 0.15 s."""
    data = stage.files(stage.folder / "set", count=24, size=2 * MIB)
    mount = stage.slow_fuse(data, seconds=0.15)
    return stage.run(library, SECONDS, 0.4, "--data", mount), f"mount {mount}"


def _slow_decoding(stage: Stage, library: Path) -> tuple[Run, str | None]:
    """Samples that keep a processor for three seconds, on every processor."""
    return stage.run(library, SECONDS, 0.6, "--decode-seconds", "3", workers=None), None


def _short_of_memory(stage: Stage, library: Path) -> tuple[Run, str | None]:
    """A mapped data set that would stay in memory, were there a little more of it."""
    mount, _ = stage.loop_device(128 * MIB)
    data = stage.files(mount / "set", count=1, size=80 * MIB)
    stage.throttled(read=5 * MIB)
    stage.limited(80 * MIB)
    # Only pages that were in memory before can be read again.
    arguments = ("--mapped", data / "0.bin", "--pages", "8000")
    return stage.run(library, SECONDS, 0.6, *arguments, warm_up=60.0), None


def _checkpoints(stage: Stage, library: Path) -> tuple[Run, str | None]:
    """Eight seconds of writing after every 25 of work, and nothing to load."""
    place = stage.folder / "checkpoint.pt"
    stage.throttled(write=100 * MIB)
    arguments = ("--checkpoint", place, "--checkpoint-bytes", str(800 * MIB))
    run = stage.run(library, SECONDS, 0.6, *arguments)
    return run, f"disk {disk_below(stage.folder)}"


def _healthy(stage: Stage, library: Path) -> tuple[Run, str | None]:
    """Loaders that keep up: nothing is slow."""
    data = stage.files(stage.folder / "set", count=24, size=2 * MIB)
    return stage.run(library, SECONDS, 0.6, "--data", data), None


SCENARIOS = (
    Scenario("slow-disk", "local_storage", _slow_disk),
    Scenario("slow-fuse", "fuse_or_object_storage", _slow_fuse),
    Scenario("slow-decoding", "cpu_dataloader", _slow_decoding),
    Scenario("short-of-memory", "host_memory", _short_of_memory),
    Scenario("checkpoints", "checkpointing", _checkpoints),
    Scenario("healthy", None, _healthy),
)
