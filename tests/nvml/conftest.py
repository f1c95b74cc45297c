"""A client on the fake NVML library, and what must be left of it afterwards: nothing."""

import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from agent.nvml.client import GpuReading, NvmlClient, NvmlTick
from telemetry.clock import ManualClock
from tests.fakenvml.staged import Scenario

UUID = "GPU-fa4e{0:04x}-0000-4000-8000-{1:012x}"


class Bench:
    """A staged driver and a client that asks it, on one clock that `advance` moves."""

    def __init__(
        self,
        library: Path,
        folder: Path,
        scenario: str,
        deadline: float,
        *,
        profiling: bool = True,
    ) -> None:
        self.scenario = Scenario(library, folder, scenario, stepped=True)
        self.clock = ManualClock()
        self._started = self.clock.monotonic()
        self.client = NvmlClient(
            deadline=deadline,
            throughput_interval=0.05,
            profiling=profiling,
            clock=self.clock.monotonic,
            environment={**os.environ, **self.scenario.environment},
        )

    @staticmethod
    def uuid(gpu: int) -> str:
        """The UUID that the fake library gives to gpuN."""
        return UUID.format(gpu, gpu + 1)

    def advance(self, seconds: float = 1.0) -> None:
        """Let the driver's time and the agent's pass alike."""
        self.clock.advance(seconds)
        self.scenario.at(self.clock.monotonic() - self._started)

    def tick(self, wait: float | None = None) -> NvmlTick:
        """A tick, one second after the last."""
        self.advance()
        return self.client.tick(wait)

    def until(self, met: Callable[[NvmlTick], bool], seconds: float = 20) -> NvmlTick:
        """Ticks until one is as wished."""
        end = time.monotonic() + seconds
        while True:
            tick = self.tick(1)
            if met(tick):
                return tick
            assert time.monotonic() < end, tick
            time.sleep(0.02)


def by_index(tick: NvmlTick) -> dict[int | None, GpuReading]:
    """The readings of a tick by index."""
    return {gpu.index: gpu for gpu in tick.gpus}


@pytest.fixture
def stage(fakenvml: Path, tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Starts a bench on a scenario's text; at the end no process and no descriptor is left."""
    gc.collect()  # what other tests of this process left is closed now, not in between
    before = len(os.listdir("/proc/self/fd"))
    benches: list[Bench] = []

    def start(scenario: str, deadline: float = 5.0) -> Bench:
        folder = tmp_path / str(len(benches))
        folder.mkdir()
        benches.append(Bench(fakenvml, folder, scenario, deadline))
        return benches[-1]

    yield start
    for bench in benches:
        bench.client.close()
        bench.scenario.close()
    assert [child for child in psutil.Process().children() if "nvml" in str(child.cmdline())] == []
    assert len(os.listdir("/proc/self/fd")) == before
