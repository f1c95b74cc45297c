"""Golden machines, a folder each: `once`, `inventory` and `doctor` as expected files.

`python -m tests.machines.test_machines` writes the expected files anew, to be read before they
are kept.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.collectors.mount import MountCollector
from agent.config.settings import GpuSettings, Settings
from agent.doctor.checkup import checkup
from agent.host.hostfs import HostFs
from agent.machine import MachineSource
from agent.nvml.client import NvmlClient
from agent.once import document, take
from telemetry.clock import ManualClock
from tests.collectors.tree import plant
from tests.fakenvml.staged import Scenario
from tests.machines.build import tree

MACHINES = Path(__file__).parent.parent / "golden" / "machines"
OURS = ("configuration", "store", "daemon", "influxdb", "buckets")
"""Checks that are of the agent's own set-up, not of the machine."""


class Stage(ManualClock):
    """A clock that moves the driver's time too, and the machine's counters with the second."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__()
        self._scenario = scenario
        self.later: Callable[[], object] = str
        self._began = self.monotonic()

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        self._scenario.at(self.monotonic() - self._began)
        self.later()
        time.sleep(0.25)  # PCIe without byte counters is read outside the tick


def described(folder: Path, library: Path, place: Path) -> dict[str, Any]:
    """What the agent says of the machine of a folder."""
    machine = tomllib.loads((folder / "machine.toml").read_text("utf-8"))
    root = place / "root"
    plant(root, tree(machine, after=False))
    scenario = Scenario(library, place, machine["gpu"], stepped=True)
    clock = Stage(scenario)
    nvml = partial(
        NvmlClient,
        clock=clock.monotonic,
        environment={**os.environ, **scenario.environment},
    )
    settings = Settings(gpu=GpuSettings(throughput_seconds=0.05))
    source = MachineSource(settings, folder.name, hostfs=HostFs(root), patience=None, nvml=nvml)

    def later() -> None:
        for collector in source.collectors:
            if isinstance(collector, MountCollector):
                collector.wait(5.0)
        plant(root, tree(machine, after=True))

    clock.later = later
    try:
        once = document(source, take(source, clock), folder.name)
        inventory = source.inventory().to_json()
        doctor = [
            check.to_json()
            for check in checkup(settings, source, None, clock)
            if check.name not in OURS
        ]
    finally:
        source.close()
        scenario.close()
    told = {"once": once, "inventory": inventory, "doctor": doctor}
    return {name: json.loads(_plain(part, str(root))) for name, part in told.items()}


def _plain(part: Any, root: str) -> str:
    """As JSON, without what is of the machine that runs the test."""

    def rounded(value: Any) -> Any:
        if isinstance(value, float):
            return value if value.is_integer() else float(f"{value:.5g}")
        if isinstance(value, dict):
            return {
                k: rounded(v)
                for k, v in value.items()
                if k not in ("time", "size_bytes_of_mount", "used_bytes", "used_ratio")
            }
        return [rounded(v) for v in value] if isinstance(value, list | tuple) else value

    if isinstance(part, dict):
        for mount in part.get("mounts", ()):
            if "metrics" in mount:
                mount["metrics"].pop("size_bytes", None)
        part.get("unavailable", {}).pop("mount", None)
    return json.dumps(rounded(part)).replace(root, "")


@pytest.mark.parametrize("name", sorted(path.name for path in MACHINES.iterdir()))
def test_machine(name: str, fakenvml: Path, tmp_path: Path) -> None:
    folder = MACHINES / name
    for part, told in described(folder, fakenvml, tmp_path).items():
        expected = json.loads((folder / f"{part}.json").read_text("utf-8"))
        assert told == expected, part


def _write() -> None:
    library = Path(__file__).parents[1] / "fakenvml" / "build"
    for folder in sorted(MACHINES.iterdir()):
        with tempfile.TemporaryDirectory() as place:
            for part, told in described(folder, library, Path(place)).items():
                text = json.dumps(told, indent=1, ensure_ascii=False)
                (folder / f"{part}.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    _write()
