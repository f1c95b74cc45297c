"""`once` and `inventory` against the fake NVML library, in the shape that the design promises."""

import os
from pathlib import Path
from typing import Any

import pytest

from agent.once_page import page
from telemetry.metrics import GPU
from tests.agent.command import talla_agent
from tests.engines.test_collector import engine
from tests.fakenvml.staged import Scenario

SCENARIO = """
gpus=8
gpu*.name=NVIDIA H100 80GB HBM3
gpu*.util=square:20,40,40,0.7
gpu*.mem_used_mib=20000
gpu*.power_w=300
gpu*.pcie_rx_kbs=1000
gpu0.proc={pid},C,18000,55
gpu1.proc={engine},C,9000,5
gpu2.nvmlDeviceGetUtilizationRates=NOT_SUPPORTED
gpu5.lost_after=0
"""

CONFIG = """
[agent]
host = "gpu01"
[server]
purpose = "chat service"
redundancy = "n+1"
standby = false
power_feed_watts = 10400
pinned_phases = ["training"]
data_paths = ["/"]
model = "Llama-3.1-8B-Instruct"
[[server.workloads]]
phase = "llm_inference"
parameters = 8e9
gpus = [0, 1]
"""


@pytest.fixture(scope="module")
def taken(
    fakenvml: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The documents of `once` and `inventory`, and the page of `once`."""
    folder = tmp_path_factory.mktemp("once")

    with engine(folder) as (pid, _, _):
        staged = Scenario(fakenvml, folder, SCENARIO.format(pid=os.getpid(), engine=pid))
        config = folder / "agent.toml"
        config.write_text(CONFIG)
        documents = [
            talla_agent(command, "--json", "--config", config, environment=staged.environment)
            for command in ("once", "inventory")
        ]
        page = talla_agent("once", "--config", config, environment=staged.environment)
    for ran in (*documents, page):
        assert (ran.code, ran.err) == (0, "")
    return documents[0].json(), documents[1].json(), page.out


def test_all_eight_have_a_row_in_the_promised_shape(taken: Any) -> None:
    once = taken[0]
    assert {"time", "host", "gpus", "host_metrics", "disks", "mounts", "nics", "engines"} <= set(
        once
    )
    assert once["host"] == "gpu01"
    assert [gpu["index"] for gpu in once["gpus"]] == list(range(8))
    declared = {metric.name for metric in GPU.metrics}
    for gpu in once["gpus"]:
        assert {"metrics", "unavailable", "processes"} <= set(gpu)
        assert set(gpu["metrics"]) <= declared
        assert set(gpu["unavailable"]) <= declared
        assert set(gpu["metrics"]).isdisjoint(gpu["unavailable"])
        assert all(isinstance(reason, str) and reason for reason in gpu["unavailable"].values())


def test_a_healthy_card_tells_what_it_has(taken: Any) -> None:
    gpu = taken[0]["gpus"][1]
    assert gpu["name"] == "NVIDIA H100 80GB HBM3"
    assert gpu["uuid"].startswith("GPU-")
    metrics = gpu["metrics"]
    assert metrics["utilization_ratio"] == pytest.approx(0.4)
    assert metrics["power_watts"] == pytest.approx(300, rel=0.01)
    assert metrics["memory_used_bytes"] >= 20_000 << 20
    # A rate, which two readings are needed for.
    assert metrics["pcie_rx_bytes_per_second"] == pytest.approx(1_000_000, rel=0.1)
    assert "error" not in gpu


def test_what_one_card_lacks_is_named_and_nothing_is_invented(taken: Any) -> None:
    gpu = taken[0]["gpus"][2]
    assert "utilization_ratio" not in gpu["metrics"]
    assert "Not Supported" in gpu["unavailable"]["utilization_ratio"]
    assert gpu["metrics"]["power_watts"] == pytest.approx(300, rel=0.01)
    for other in taken[0]["gpus"]:
        assert all(value >= 0 for value in other["metrics"].values())


def test_a_lost_card_keeps_its_row_with_the_error(taken: Any) -> None:
    gpu = taken[0]["gpus"][5]
    assert "GPU is lost" in gpu["error"]
    assert gpu["metrics"] == {}
    assert gpu["processes"] == []
    assert "uuid" not in gpu  # it has never told it


def test_a_process_is_told_with_its_memory(taken: Any) -> None:

    (process,) = taken[0]["gpus"][0]["processes"]
    assert process["pid"] == os.getpid()
    assert process["memory_bytes"] == 18_000 << 20
    assert process["name"]
    assert process["user"]


def test_the_host_is_there(taken: Any) -> None:
    once = taken[0]
    assert once["host_metrics"]["memory_total_bytes"] > 0
    assert 0 <= once["host_metrics"]["cpu_busy_ratio"] <= 1
    assert any(mount["mount"] == "/" for mount in once["mounts"])


def test_counts_are_whole_numbers_and_ratios_are_not(taken: Any) -> None:
    metrics = taken[0]["gpus"][1]["metrics"]
    assert type(metrics["memory_total_bytes"]) is int
    assert type(taken[0]["gpus"][0]["processes"][0]["memory_bytes"]) is int
    assert type(taken[0]["host_metrics"]["memory_total_bytes"]) is int
    assert type(metrics["throttle_thermal_ratio"]) is float


def test_an_engine_is_told_to_programs_and_to_people(taken: Any) -> None:
    (found,) = taken[0]["engines"]
    assert found["engine"] == "vllm"
    assert type(found["metrics"]["requests_running"]) is int
    (line,) = [line for line in taken[2].splitlines() if line.startswith("Engine ")]
    assert line.startswith("Engine vllm ")
    assert f"on port {found['port']}: " in line
    assert f"serves {found['model']}" in line


def test_the_page_says_it_for_people(taken: Any) -> None:
    page = taken[2]
    assert page.count("NVIDIA H100 80GB HBM3: ") == 7
    assert "GPU 5  unknown model: does not answer: GPU is lost" in page
    assert "busy is unknown: Not Supported" in page
    assert "{" not in page


def test_a_name_cannot_give_orders_to_a_terminal() -> None:
    process = {"pid": 7, "user": "u", "name": "a\x1b[2J\x07\nGPU 9", "memory_bytes": 1}
    gpu = {"index": 0, "metrics": {"utilization_ratio": 0.5}, "processes": [process]}
    found = {"time": 0, "host": "h", "gpus": [gpu], "host_metrics": {}}
    text = page({**found, "disks": [], "mounts": [], "nics": [], "engines": []})
    assert all(line.isprintable() for line in text.splitlines())
    assert "a\\x1b[2J\\x07\\nGPU 9" in text


def test_the_inventory_tells_hardware_and_what_is_declared(taken: Any) -> None:
    inventory = taken[1]
    assert inventory["host"] == "gpu01"
    assert len(inventory["gpus"]) == 7  # the lost one has told nothing
    card = inventory["gpus"][0]
    assert card["name"] == "NVIDIA H100 80GB HBM3"
    assert card["compute_capability"] == "9.0"
    assert card["pcie"]["max_generation"] == 5
    assert inventory["cpu"]["threads"] >= 1
    assert inventory["memory_bytes"] > 0
    assert inventory["purpose"] == "chat service"
    assert inventory["redundancy"] == "n+1"
    assert inventory["standby"] is False
    assert inventory["power_feed_watts"] == 10400
    assert inventory["pinned_phases"] == ["training"]
    assert inventory["data_paths"] == ["/"]
    assert inventory["model"] == "Llama-3.1-8B-Instruct"
    assert inventory["workloads"] == [{"phase": "llm_inference", "parameters": 8e9, "gpus": [0, 1]}]


def test_doctor_names_the_lost_card(fakenvml: Path, tmp_path: Path) -> None:
    staged = Scenario(fakenvml, tmp_path, SCENARIO.format(pid=1, engine=1))
    ran = talla_agent("doctor", "--json", environment=staged.environment)
    checks = ran.json()["checks"]
    assert ran.code == 0
    (driver,) = (check for check in checks if check["check"] == "gpu driver")
    assert driver["status"] == "ok"
    assert driver["text"].startswith("8 GPUs, driver ")
    (lost,) = (check for check in checks if check["check"] == "gpu 5")
    assert lost["status"] == "problem"
    assert "dmesg" in lost["remedy"]
    told = [check["text"] for check in checks if check["check"] == "gpu 2"]
    assert any("utilization_ratio" in text and "Not Supported" in text for text in told)
