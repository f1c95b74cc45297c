"""The GPU collectors on the real client and the fake NVML library."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.collectors import Sources
from agent.collectors.gpu import NO_CLIENT, GpuCollector
from agent.collectors.gpu_process import GpuProcessCollector
from agent.config.settings import GpuSettings, Settings
from agent.host.hostfs import HostFs
from agent.machine import MachineSource
from agent.nvml.client import NvmlClient
from agent.nvml.sleep import Sleepers
from telemetry.metrics import GPU
from telemetry.window import Sample
from tests.collectors.tree import plant
from tests.fakenvml.staged import Scenario

SCENARIO = """
gpus=4
gpu*.name=NVIDIA H100 80GB HBM3
gpu*.util=40
gpu*.mem_used_mib=2000
gpu1.nvmlDeviceGetUtilizationRates=NOT_SUPPORTED
gpu2.lost_after=0
"""


@pytest.fixture
def client(fakenvml: Path, tmp_path: Path) -> Iterator[NvmlClient]:
    text = SCENARIO + f"gpu0.proc={os.getpid()},C,1500,50\ngpu3.proc=4194000,C,1500,50\n"
    scenario = Scenario(fakenvml, tmp_path, text)
    client = NvmlClient(environment={**os.environ, **scenario.environment})
    yield client
    client.close()


def test_a_lost_gpu_and_a_missing_reading_cost_nobody_else(client: NvmlClient) -> None:
    collector = GpuCollector(Sources(hostfs=HostFs("/nowhere"), nvml=client, gpu_patience=None))
    sample = Sample(1.0, {})
    collector.collect(1.0, sample)
    readings = collector.readings
    assert [r.index for r in readings] == [0, 1, 2, 3]
    keys = [("gpu", r.uuid or f"index:{r.index}") for r in readings]
    assert set(sample.texts) == set(keys)
    assert set(sample.rows) == {keys[0], keys[1], keys[3]}
    assert sample.rows[keys[0]]["utilization_ratio"] == pytest.approx(0.4)
    assert "utilization_ratio" not in sample.rows[keys[1]]
    assert sample.rows[keys[1]]["memory_used_bytes"] == 2000 * 2**20
    assert sample.texts[keys[0]]["gpu_model"] == "NVIDIA H100 80GB HBM3"
    assert "error" in sample.texts[keys[2]]
    assert "error" not in sample.texts[keys[0]]
    for row in sample.rows.values():
        assert set(row) <= {metric.name for metric in GPU.metrics}
    unavailable = collector.unavailable()
    assert " ".join(keys[2]) in unavailable
    assert " ".join([*keys[1], "utilization_ratio"]) in unavailable


def test_the_processes_of_the_driver_are_looked_up(client: NvmlClient, tmp_path: Path) -> None:
    hostfs = plant(
        tmp_path / "root", "--- /proc/self/ns/pid -> pid:[4026531836]\n--- /proc/1/stat\n1\n"
    )
    (tmp_path / f"root/proc/{os.getpid()}").symlink_to("/proc/self")
    sources = Sources(hostfs=hostfs, nvml=client, gpu_patience=None)
    gpu, process = GpuCollector(sources), GpuProcessCollector(sources)
    sample = Sample(1.0, {})
    for now in (1.0, 2.0):
        sample = Sample(now, {})
        gpu.collect(now, sample)
        process.collect(now, sample)
    first, last = gpu.readings[0].uuid, gpu.readings[3].uuid
    assert first is not None
    assert last is not None
    row = sample.rows["gpu", first]
    assert row["process_count"] == 1
    assert row["process_memory_bytes"] == 1500 * 2**20
    assert sample.rows["gpu_process", first, "0"]["memory_bytes"] == 1500 * 2**20
    assert sample.texts["gpu_process", first, "0"]["pid"] == str(os.getpid())
    assert sample.texts["gpu_process", first, "0"]["state"] == "running"
    assert sample.texts["gpu_process", last, "0"] == {"pid": "4194000", "state": "gone"}
    assert sample.rows["gpu", last]["process_count"] == 0
    assert sample.rows["gpu", last]["process_memory_bytes"] == 0


def test_without_a_client_there_are_no_gpus() -> None:
    sample = Sample(1.0, {})
    collector = GpuCollector(Sources(hostfs=HostFs("/nowhere")))
    collector.collect(1.0, sample)
    assert not sample.rows
    assert collector.unavailable() == {"gpu": NO_CLIENT}


def test_without_a_driver_the_reason_is_told(tmp_path: Path) -> None:
    client = NvmlClient(environment={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(tmp_path)})
    try:
        collector = GpuCollector(Sources(nvml=client, gpu_patience=None))
        sample = Sample(1.0, {})
        collector.collect(1.0, sample)
        if sample.rows:
            pytest.skip("this machine has a driver")
        assert not sample.texts
        assert "libnvidia-ml" in collector.unavailable()["gpu"]
    finally:
        client.close()


def test_the_settings_of_gpus_reach_their_process() -> None:
    asked: list[tuple[float, float, bool]] = []

    def client(
        deadline: float, throughput_interval: float, *, profiling: bool, sleepers: Sleepers
    ) -> NvmlClient:
        asked.append((deadline, throughput_interval, profiling))
        return NvmlClient(deadline, throughput_interval, profiling, sleepers=sleepers)

    gpu = GpuSettings(deadline_seconds=3.0, throughput_seconds=20.0, profiling=False)
    MachineSource(Settings(gpu=gpu), "host", nvml=client).close()
    assert asked == [(3.0, 20.0, False)]
