"""GPUs that sleep to save power: never woken by a reading."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.host.hostfs import HostFs
from agent.nvml.client import NvmlTick
from agent.nvml.sleep import ALL_ASLEEP, ASLEEP, Sleepers
from tests.nvml.conftest import Bench, by_index

Stage = Callable[..., Bench]
ADDRESS = "0000:{:02x}:00.0"


class Sysfs:
    """What the kernel says of the power of GPUs 0, 1, ... at the fake library's addresses."""

    def __init__(self, root: Path, gpus: int, control: str = "auto") -> None:
        self._folder = root / "sys/bus/pci/drivers/nvidia"
        for gpu in range(gpus):
            power = self._power(gpu)
            power.mkdir(parents=True)
            (power / "control").write_text(control + "\n")
            self.set(gpu, "active")
        (self._folder / "module").mkdir()
        (self._folder / "bind").write_text("")

    def _power(self, gpu: int) -> Path:
        return self._folder / ADDRESS.format(0x10 + gpu) / "power"

    def set(self, gpu: int, status: str) -> None:
        (self._power(gpu) / "runtime_status").write_text(status + "\n")


@pytest.fixture
def asleep(stage: Stage, tmp_path: Path) -> Iterator[Callable[..., tuple[Bench, Sysfs]]]:
    def start(scenario: str, gpus: int, control: str = "auto") -> tuple[Bench, Sysfs]:
        sysfs = Sysfs(tmp_path / "root", gpus, control)
        bench = stage(scenario)
        benches.append(bench)
        bench.client._sleepers = Sleepers(HostFs(tmp_path / "root"))
        return bench, sysfs

    benches: list[Bench] = []
    yield start
    for bench in benches:  # lets go of the files that it keeps open
        bench.client._sleepers = Sleepers(HostFs(tmp_path / "nothing"))


def calls(bench: Bench) -> int:
    """Calls of NVML by all children so far."""
    prefix = Path(bench.scenario.environment["FAKENVML_STATS"])
    files = prefix.parent.glob(f"{prefix.name}.*.bin")
    return sum(int.from_bytes(file.read_bytes()[24:32], "little") for file in files)


def errors(tick: NvmlTick) -> dict[int | None, str | None]:
    return {gpu.index: gpu.error for gpu in tick.gpus}


def test_no_process_looks_while_every_gpu_sleeps(
    asleep: Callable[..., tuple[Bench, Sysfs]],
) -> None:
    bench, sysfs = asleep("gpus=2\n", 2)
    sysfs.set(0, "suspended")
    sysfs.set(1, "suspended")
    for _ in range(3):
        tick = bench.tick()
        assert (tick.gpus, tick.missing) == ((), ALL_ASLEEP)
    assert bench.client.pid is None
    assert calls(bench) == 0
    sysfs.set(0, "active")
    sysfs.set(1, "active")
    assert errors(bench.tick()) == {0: None, 1: None}


def test_a_gpu_that_falls_asleep_is_asked_nothing_until_it_wakes(
    asleep: Callable[..., tuple[Bench, Sysfs]],
) -> None:
    # Any call for GPU 1 while it sleeps would crash the child.
    bench, sysfs = asleep("gpus=2\ngpu1.nvmlDeviceGetUtilizationRates=CRASH@3-8\n", 2)
    bench.tick()
    bench.tick()
    sysfs.set(1, "suspended")
    pid = bench.client.pid
    for _ in range(5):
        tick = bench.tick()
        assert errors(tick) == {0: None, 1: ASLEEP}
        assert by_index(tick)[1].uuid == bench.uuid(1)
        assert by_index(tick)[1].asleep
    sysfs.set(1, "active")
    assert errors(bench.tick()) == {0: None, 1: None}
    assert bench.client.pid == pid
    assert bench.client.take_events() == ()  # sleep is no loss


def test_one_that_sleeps_at_the_start_is_left_alone_and_opened_when_it_wakes(
    asleep: Callable[..., tuple[Bench, Sysfs]],
) -> None:
    bench, sysfs = asleep("gpus=3\ngpu1.nvmlDeviceGetUUID=CRASH@0-4\n", 3)
    sysfs.set(1, "suspended")
    for _ in range(3):
        assert errors(bench.tick()) == {0: None, 2: None}
    assert bench.client.restarts_total == 0
    bench.advance(2)
    sysfs.set(1, "active")
    assert errors(bench.tick()) == {0: None, 1: None, 2: None}
    assert bench.client.restarts_total == 0


def test_where_the_kernel_does_not_manage_power_nothing_is_left_out(
    asleep: Callable[..., tuple[Bench, Sysfs]],
) -> None:
    bench, sysfs = asleep("gpus=1\n", 1, "on")
    sysfs.set(0, "suspended")  # cannot be; if it were said, `control` decides
    assert errors(bench.tick()) == {0: None}
