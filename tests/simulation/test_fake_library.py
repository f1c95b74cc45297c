"""One scenario through library, pynvml, agent and aggregator is what the simulator says of it."""

import os
from pathlib import Path
from typing import Any

import pytest

from agent.collectors.collector import Sources
from agent.collectors.gpu import GpuCollector
from agent.collectors.gpu_process import GpuProcessCollector
from agent.host.hostfs import HostFs
from agent.nvml.client import NvmlClient
from telemetry.aggregate import Aggregator
from telemetry.chains import CHAINS
from telemetry.metrics import GPU, Metric, Statistic
from telemetry.signals import Signals
from telemetry.simulation import Scenario, fake_library, history, read_scenario, samples
from telemetry.window import Key, Sample, Window
from tests.fakenvml import staged

START = 1_735_733_100  # 12:05 of a Wednesday: a window begins, a half hour does not
SECONDS = 600

# Rounding on the way: whole percent, degrees and megahertz; the rest to a few parts in 100000.
TOLERANCE: tuple[tuple[str, float], ...] = (
    ("memory_utilization_ratio", 0.0051),
    ("temperature_celsius", 0.51),
    ("_clock_hertz", 0.51e6),
)
# Those that come from /proc: here the library's processes are this test's own.
OF_PROC = tuple(m.name for m in GPU.metrics if "/proc" in GPU.source(m.name).source) + tuple(
    f"{kind}_{chain.name}_ratio" for chain in CHAINS if chain.of_job for kind in ("gap", "signal")
)
HELD = 5
"""Temperatures are read every 5 s and told each second until the next reading."""


def tolerance(field: str, value: float) -> float:
    exact = max(1e-6, abs(value) * 2e-5)
    if field.endswith(("_zero_ratio", "_busy_ratio", "_count")):
        return 1e-9
    return next((t for name, t in TOLERANCE if name in field), exact)


def held_temperatures(window: Window, subject: Key, samples: list[Sample]) -> dict[str, float]:
    """How far statistics may be from those of each second, where a reading is up to 5 s old.

    A reading is that of some second among the last five: its mean is off by at most the mean of
    the largest step back, its maximum by the largest of all.
    """
    slack: dict[str, float] = {}
    for metric in ("temperature_celsius", "memory_temperature_celsius"):
        course = [sample.rows[subject].get(metric, 0.0) for sample in samples]
        first = window.start - START
        steps = [
            max(abs(course[i] - course[max(0, i - back)]) for back in range(HELD + 1))
            for i in range(first, first + window.seconds)
        ]
        for statistic, field in declared(metric).fields():
            mean = statistic is Statistic.MEAN
            slack[field] = sum(steps) / len(steps) if mean else max(steps)
    return slack


def declared(name: str) -> Metric:
    metric = GPU.metric(name)
    assert metric is not None
    return metric


def scenario(training: dict[str, Any]) -> Scenario:
    """A node on which one job starves, one serves, and one card is empty."""
    return read_scenario(
        {
            "title": "Parity",
            "seed": 5,
            "server": {
                "host": "parity",
                "memory": "64 GiB",
                "swap": "nvme0n1",
                "cpu": {"model": "x", "sockets": 1, "physical_cores": 32, "threads": 64},
                "gpus": [
                    {"name": "NVIDIA H100 80GB HBM3", "count": 2},
                    {"name": "NVIDIA L40S", "count": 2},
                ],
                "disks": {"nvme0n1": {"kind": "nvme", "size": "1 TB"}},
                "nics": {"eno1": {"speed": "1 Gb/s"}},
                "mounts": {
                    "/data": {"on": "eno1", "fstype": "nfs4", "source": "nas:/data"},
                    "/": {"on": "nvme0n1"},
                },
            },
            "jobs": {
                "run": {
                    "like": "training",
                    "command": "python train.py",
                    "user": "u",
                    "owner": "u",
                    "gpus": [0, 1],
                    "host_memory": "60 GiB",
                    **training,
                },
                "vision": {
                    "like": "light_inference",
                    "command": "tritonserver",
                    "user": "u",
                    "owner": "u",
                    "gpus": [2],
                },
            },
        },
        "parity.toml",
    )


def through_the_agent(
    scenario: Scenario, library: Path, folder: Path, told: list[Sample]
) -> list[Window]:
    """Windows of an agent whose NVML is the fake library, and whose host is the simulator's."""
    pids = {(job.name, gpu): os.getpid() for job in scenario.jobs for gpu in job.gpus}
    traces = folder / "traces"
    traces.mkdir()
    path = fake_library(scenario, traces, start=START, seconds=SECONDS, processes=pids)
    stage = staged.Scenario(library, folder, path.read_text(), stepped=True)
    time = 0.0

    def clock() -> float:
        return time

    nvml = NvmlClient(clock=clock, environment={**os.environ, **stage.environment})
    sources = Sources(hostfs=HostFs(), nvml=nvml, gpu_patience=None)
    gpu, process = GpuCollector(sources), GpuProcessCollector(sources)
    aggregator = Aggregator(scenario.server.host, Signals.load())
    windows: list[Window] = []
    try:
        gpu.collect(time, Sample(time, {}))  # rates begin here
        for second, simulated in enumerate(told):
            time = second + 1 - 1e-6  # at the end of the second, before the next begins
            stage.at(time)
            rows = {k: dict(v) for k, v in simulated.rows.items() if k[0] not in GPU_ROWS}
            sample = Sample(float(START + second), rows)
            gpu.collect(time, sample)
            process.collect(time, sample)
            windows += aggregator.add(sample)
    finally:
        nvml.close()
    return windows + aggregator.flush()


GPU_ROWS = ("gpu", "gpu_process")


def by_time(windows: list[Window]) -> dict[tuple[int, int], Window]:
    return {(w.tier, w.start): w for w in windows}


Windows = dict[tuple[int, int], Window]


def fields_of(windows: Windows) -> set[str]:
    """The fields that any GPU has in any window."""
    found = {f for w in windows.values() for k in w.rows if k[0] == "gpu" for f in w.rows[k].values}
    return {field for field in found if not field.startswith(OF_PROC)}


def check(seen: Windows, told: Windows, samples: list[Sample]) -> None:
    """All that is simulated is read, and is the same; what nobody simulates may be read too."""
    assert seen.keys() == told.keys()
    shared = fields_of(told)
    assert shared <= fields_of(seen)
    for key, window in told.items():
        mine = seen[key].rows
        assert seen[key].seconds == window.seconds
        for subject in (k for k in window.rows if k[0] == "gpu"):
            values, expected = mine[subject].values, window.rows[subject].values
            assert values.keys() & shared == expected.keys() & shared, (key, subject)
            slack = held_temperatures(window, subject, samples)
            wrong = {
                field: (values[field], expected[field])
                for field in values.keys() & shared
                if abs(values[field] - expected[field])
                > tolerance(field, expected[field]) + slack.get(field, 0.0)
            }
            assert not wrong, (key, subject)
            assert mine[subject].texts["gpu_model"] == window.rows[subject].texts["gpu_model"]
        processes = {k for k in window.rows if k[0] == "gpu_process"}
        assert {k for k in mine if k[0] == "gpu_process"} == processes
        for subject in processes:
            assert mine[subject].values["memory_bytes"] == pytest.approx(
                window.rows[subject].values["memory_bytes"], abs=1
            )


WAVES = {
    "utilization_ratio": {"square": {"period": 40, "low": 0.30, "high": 0.93, "duty": 0.7}},
    "power_ratio": {"sine": {"period": 120, "low": 0.2, "high": 0.9}},
    "temperature_celsius": {"ramp": {"period": 300, "low": 40, "high": 80}},
    "pcie_rx_bytes_per_second": {"sine": {"period": 75, "low": 1e6, "high": 9e9}},
}


@pytest.mark.parametrize(
    "training",
    [
        {"input": {"mount": "/data", "chunk": "1 GB"}, "host_memory_pass": "1 min"},
        {"input": False, "host_memory": "20 GiB", "working": WAVES},
    ],
    ids=["starved", "waves"],
)
def test_agent_on_the_fake_library_and_both_paths_of_the_simulator_agree(
    training: dict[str, Any], fakenvml: Path, tmp_path: Path
) -> None:
    staged_scenario = scenario(training)
    told = list(samples(staged_scenario, START, SECONDS))
    aggregator = Aggregator("parity", Signals.load())
    sampled = by_time([w for s in told for w in aggregator.add(s)] + aggregator.flush())
    # A history that goes on: its first ten minutes are drawn straight from the signals.
    direct = by_time(list(history(staged_scenario, START, 1200 / 86400))[:2])

    fresh = list(samples(staged_scenario, START, SECONDS))
    seen = by_time(through_the_agent(staged_scenario, fakenvml, tmp_path, fresh))

    check(seen, sampled, told)
    check({k: w for k, w in seen.items() if k[0] == 300}, direct, told)
    gaps = [w.rows["gpu", staged_scenario.server.gpus[0].uuid].values for w in direct.values()]
    assert all(0 < values["gap_ratio"] < 1 for values in gaps)


def test_ids_of_real_processes_are_what_the_library_lists(tmp_path: Path) -> None:
    staged_scenario = scenario({"input": {"mount": "/data"}})
    path = fake_library(
        staged_scenario, tmp_path, start=START, seconds=60, processes={("run", 1): 4711}
    )
    listed = [line for line in path.read_text().splitlines() if ".proc=" in line]
    assert sum("gpu1.proc=4711,C,63488," in line for line in listed) == 1
    assert [line.split(".")[0] for line in listed] == ["gpu0", "gpu1", "gpu2"]
