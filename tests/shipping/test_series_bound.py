"""The number of InfluxDB series that a busy host makes in a week stays under a declared bound."""

from pathlib import Path

from agent.collectors.collector import Sources
from agent.collectors.gpu_process import SLOTS, GpuProcessCollector
from agent.nvml.types import GpuProcess
from telemetry.metrics import FAMILIES, family
from telemetry.window import Sample
from tests.collectors.test_processes import MACHINE, process
from tests.collectors.tree import plant

GPUS = 8
BOUND = {"gpu": GPUS, "gpu_process": GPUS * SLOTS}
"""Of a host with eight GPUs, for each window length; the others have a row a device."""


class Driver:
    """Every reading lists other processes."""

    def __init__(self) -> None:
        self.reading = 0

    def processes(self) -> tuple[GpuProcess, ...]:
        self.reading += 1
        first = 1000 + self.reading * 40
        return tuple(
            GpuProcess(f"GPU-{n % GPUS}", first + n, 1 << 30, 0.5, "compute") for n in range(40)
        )

    def unavailable_processes(self) -> dict[str, dict[str, str]]:
        return {}


def test_a_week_of_new_processes_makes_no_new_series(tmp_path: Path) -> None:
    hostfs = plant(tmp_path, MACHINE + process(1040))
    reader = GpuProcessCollector(Sources(hostfs=hostfs, nvml=Driver()))  # type: ignore[arg-type]
    seen: dict[str, set[tuple[str, ...]]] = {}
    for tick in range(
        0, 672 * 5, 5
    ):  # a reading for each quarter of an hour of a week, 26,880 pids
        sample = Sample(0.0, {("gpu", f"GPU-{n}"): {} for n in range(GPUS)})
        reader.collect(float(tick), sample)
        for key in sample.rows:
            seen.setdefault(key[0], set()).add(key[1:])
    assert {name: len(keys) for name, keys in seen.items()}.keys() == BOUND.keys()
    for name, keys in seen.items():
        assert len(keys) <= BOUND[name], name
    assert len(seen["gpu_process"]) == 40


def test_no_tag_is_a_pid_a_command_or_a_job() -> None:
    tags = {tag for f in FAMILIES for tag in (*f.tags, *f.labels)}
    assert tags == {"gpu_uuid", "gpu_model", "slot", "port", "device", "mount"}
    assert family("gpu_process").tags == ("gpu_uuid", "slot")
