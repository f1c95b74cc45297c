"""Starvation follows from the server's facts, and goes when the fact goes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.aggregate import Aggregator
from telemetry.signals import Signals
from telemetry.simulation import Scenario, samples
from telemetry.simulation.cycle import Activity, Part, cycles
from telemetry.window import Row, Window
from tests.simulation.documents import node

SHORT = {"jobs|run|host_memory": "100 GiB", "jobs|run|host_memory_pass": "2 min"}
QUICK = {"server|nics|eno1|speed": "100 Gb/s"}


def window(scenario: Scenario, start: int = 0) -> Window:
    aggregator = Aggregator("node", Signals.load(), tiers=(300,))
    for sample in samples(scenario, start, 300):
        aggregator.add(sample)
    (closed,) = aggregator.flush()
    return closed


def gpu(scenario: Scenario, closed: Window, index: int = 0) -> Row:
    return closed.rows["gpu", scenario.server.gpus[index].uuid]


def busy_share(changes: dict[str, Any]) -> float:
    scenario = node(changes)
    return 1 - gpu(scenario, window(scenario)).values["gap_ratio"]


def test_a_narrow_link_feeds_the_gpus_for_what_it_carries() -> None:
    scenario = node()
    closed = window(scenario)
    nic = closed.rows["nic", "eno1"].values
    mount = closed.rows["mount", "/data"].values
    host = closed.rows[("host",)].values
    # 1 Gb/s is some 117 MB/s of payload; the run would use 200 MB/s, less what is read ahead.
    assert mount["read_bytes_per_second_max"] == pytest.approx(117.7e6, rel=0.01)
    assert nic["rx_link_ratio_max"] > 0.95
    assert mount["read_round_trip_seconds_max"] > 0.1
    read = mount["read_bytes_per_second"] * 300
    chunks = gpu(scenario, closed).values["utilization_ratio_busy_ratio"] * 300 / 10
    assert read == pytest.approx(chunks * 2e9, rel=0.05)
    assert host["pressure_io_some_ratio_max"] > 0.8


def test_the_signs_of_a_narrow_link_coincide_with_the_gaps() -> None:
    scenario = node()
    closed = window(scenario)
    row, host = gpu(scenario, closed).values, closed.rows[("host",)].values
    gap = row["gap_ratio"]
    assert 0.1 < gap < 0.9
    for chain in ("nic", "mount", "io_pressure"):
        in_gaps = row[f"gap_{chain}_ratio"] / gap
        outside = (host[f"signal_{chain}_ratio"] - row[f"gap_{chain}_ratio"]) / (1 - gap)
        assert in_gaps >= 0.6
        assert in_gaps >= 2 * outside
    assert row["gap_job_io_ratio"] == gap
    assert row["gap_memory_ratio"] == row["gap_device_ratio"] == row["gap_cpu_ratio"] == 0


def test_a_wide_link_or_a_local_drive_feeds_the_same_run() -> None:
    assert busy_share({}) < 0.7
    assert busy_share(QUICK) == 1
    assert busy_share({"server|mounts|/data": {"on": "nvme0n1"}}) == 1


def test_a_hard_disk_makes_its_requests_wait() -> None:
    scenario = node(
        {
            "server|disks|sda": {"kind": "hdd", "size": "20 TB"},
            "server|mounts|/data": {"on": "sda"},
            "jobs|run|input|read_size": "64 KiB",
        }
    )
    closed = window(scenario)
    disk = closed.rows["disk", "sda"].values
    # 160 reads a second of 64 KiB, by sixteen workers at once: each takes a tenth of a second.
    assert disk["read_bytes_per_second_max"] == pytest.approx(160 * 65536)
    assert disk["read_await_seconds_max"] == pytest.approx(16 / 160)
    row = gpu(scenario, closed).values
    assert row["gap_device_ratio"] == row["gap_ratio"] > 0.5
    assert closed.rows["nic", "eno1"].values["rx_link_ratio_max"] < 0.001


def test_too_few_cores_keep_the_gpus_waiting_for_data() -> None:
    decoding = {**QUICK, "jobs|run|input|decode_core_seconds": 100, "jobs|run|input|workers": 256}
    few = {**decoding, "server|cpu|physical_cores": 8, "server|cpu|threads": 16}
    scenario = node(few | {"jobs|run|cpu_cores": 2})
    closed = window(scenario)
    row = gpu(scenario, closed).values
    assert row["gap_cpu_ratio"] / row["gap_ratio"] > 0.95
    assert closed.rows[("host",)].values["cpu_busy_ratio_max"] == 1
    assert busy_share({**decoding, "server|cpu|physical_cores": 256}) == 1


def test_too_little_memory_swaps_and_twice_as_much_does_not() -> None:
    scenario = node(SHORT | QUICK)
    closed = window(scenario)
    host, row = closed.rows[("host",)].values, gpu(scenario, closed).values
    short = (100 + 8 - 64) * 2**30
    assert host["swap_used_bytes"] == short
    assert host["swap_in_bytes_per_second_max"] == 800e6
    assert host["major_faults_per_second_max"] > 500
    assert host["pressure_memory_some_ratio_max"] > 0.05
    # One pass over the run's memory, two minutes of work, brings back what does not fit.
    work = row["utilization_ratio_busy_ratio"] * 300
    assert host["swap_in_bytes_per_second"] * 300 == pytest.approx(short * work / 120, rel=0.05)
    for chain in ("memory", "io_pressure", "job_io"):
        assert row[f"gap_{chain}_ratio"] == pytest.approx(row["gap_ratio"])
    assert row["gap_nic_ratio"] == 0

    enough = window(node(SHORT | QUICK | {"server|memory": "128 GiB"}))
    host = enough.rows[("host",)].values
    assert host["swap_used_bytes"] == host["swap_in_bytes_per_second_max"] == 0
    assert host["pressure_memory_some_ratio_max"] == 0
    assert host["memory_used_bytes"] == 108 * 2**30


def test_jobs_share_a_link_by_what_they_ask_for() -> None:
    other = {
        "like": "training",
        "command": "python train.py",
        "user": "u",
        "owner": "u",
        "gpus": [1],
        "compute": "10 s",
        "input": {"mount": "/data", "chunk": "1 GB", "workers": 8},
    }
    alone, both = node(), node({"jobs|run|gpus": [0], "jobs|other": other})
    (single,) = cycles(alone.server, [Activity(alone.jobs[0], True)])
    first, second = cycles(both.server, [Activity(job, True) for job in both.jobs])
    capacity = both.server.mounts["/data"].capacity(1 << 20)
    assert single.read == capacity
    assert first.read + second.read == pytest.approx(capacity)
    assert first.read == pytest.approx(2 * second.read)
    assert first.busy_ratio < single.busy_ratio


@given(st.lists(st.integers(1, 400), min_size=2, max_size=2, unique=True))
def test_a_faster_link_never_feeds_less(speeds: list[int]) -> None:
    slow, fast = (node({"server|nics|eno1|speed": speed * 100_000_000}) for speed in sorted(speeds))
    (low,) = cycles(slow.server, [Activity(slow.jobs[0], True)])
    (high,) = cycles(fast.server, [Activity(fast.jobs[0], True)])
    assert low.busy_ratio <= high.busy_ratio
    # What is read in a cycle is the chunk, to the second that a wait is rounded to.
    for cycle in (low, high):
        waits = cycle.parts.count(Part.READ)
        read = waits * cycle.read + 10 * cycle.ahead
        assert abs(read - 2e9) <= 0.51 * cycle.read if waits else read == pytest.approx(2e9)


def test_a_checkpoint_is_a_gap_with_writes() -> None:
    scenario = node(
        QUICK | {"jobs|run|checkpoint": {"mount": "/", "size": "70 GB", "every": "5 min"}}
    )
    closed = window(scenario)
    row = gpu(scenario, closed).values
    assert row["gap_ratio"] == row["gap_write_ratio"] == pytest.approx(20 / 300)
    disk = closed.rows["disk", "nvme0n1"].values
    assert disk["write_bytes_per_second"] * 300 == pytest.approx(70e9)


def test_an_engine_that_is_asked_for_more_than_its_cache_makes_requests_wait() -> None:
    def engine(asked: int) -> dict[str, float]:
        serving = {
            "like": "llm_serving",
            "command": "vllm serve x",
            "user": "u",
            "owner": "u",
            "gpus": [0],
            "requests": {"busy_ratio": 1.0, "daily": [1.0] * 24},
            "engine": {
                "port": 8000,
                "model": "x",
                "weights": "60 GB",
                "overhead": "1 GB",
                "kv_per_token": 1e6,
                "tokens_per_request": 1000,
                "requests_at_peak": asked,
            },
        }
        return window(node({"jobs|run": None, "jobs|bot": serving})).rows["engine", "8000"].values

    # 90 % of 81559 MiB, less 61 GB, is 15.97 GB: fifteen requests of a gigabyte.
    easy, hard = engine(10), engine(20)
    assert easy["kv_cache_bytes"] == pytest.approx(0.9 * 81559 * 2**20 - 61e9)
    assert (easy["requests_running"], easy["requests_waiting"]) == (10, 0)
    assert (hard["requests_running"], hard["requests_waiting"]) == (15, 5)
    assert hard["kv_cache_usage_ratio_max"] == pytest.approx(15e9 / easy["kv_cache_bytes"])
