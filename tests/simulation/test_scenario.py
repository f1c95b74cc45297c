"""Scenario files: what is refused and how it is said, `extends`, templates, the inventory."""

from pathlib import Path
from typing import Any

import pytest

from telemetry.simulation import ScenarioError, load_scenario, read_scenario, samples
from tests.simulation.documents import changed, node


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"titel": "x"}, "titel: unknown key"),
        ({"title": None}, "title: missing"),
        ({"server|host": 3}, "server.host: expected a text"),
        (
            {"server|memory": "64 GiBs"},
            'server.memory: expected bytes, as a number or .* "512 GiB"',
        ),
        (
            {"server|memroy": 1},
            "server.memroy: unknown key; known in \\[server\\]: cpu, data_paths",
        ),
        ({"server|gpus": {"name": "x"}}, "server.gpus: expected a list of tables"),
        ({"server|gpus": [{"name": "H100"}]}, "server.gpus\\[0\\].name: expected one of NVIDIA"),
        ({"server|cpu|sockets": 0}, "server.cpu.sockets: expected a whole number from 1"),
        (
            {"server|mounts|/data|on": "eno2"},
            "server.mounts./data.on: expected one of nvme0n1, eno1",
        ),
        ({"server|swap": "sdz"}, "server.swap: expected one of the disks nvme0n1"),
        ({"jobs|run|like": "trainning"}, "jobs.run.like: expected one of full_finetuning"),
        ({"jobs|run|gpus": [0, 2]}, "jobs.run.gpus: .* indices from 0 to 1"),
        ({"jobs|run|gpu_memory": "90 GB"}, "jobs.run.gpu_memory: expected at most"),
        ({"jobs|run|alive": "at night"}, 'jobs.run.alive: expected "always"'),
        ({"jobs|run|input|mount": "/nas"}, "jobs.run.input.mount: expected one of /, /data"),
        ({"jobs|run|input|prefetch_ratio": 2}, "jobs.run.input.prefetch_ratio: .* from 0 to 1"),
        ({"jobs|run|working|gpu_ratio": 1}, "jobs.run.working.gpu_ratio: expected a metric among"),
        (
            {"jobs|run|working|power_ratio": {"sine": {"period": 5}}},
            "jobs.run.working.power_ratio: expected sine with period, low, high; low is missing",
        ),
        ({"jobs|run": 1}, "jobs.run: expected a table"),
        ({"jobs|run|user": None}, "jobs.run.user: missing"),
    ],
)
def test_a_wrong_key_is_named_with_its_file(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=f"^node.toml: {message}"):
        node(changes)


def test_a_file_that_is_no_toml_and_one_that_is_not_there(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("title = ")
    with pytest.raises(ScenarioError, match=r"broken\.toml: Invalid value"):
        load_scenario(broken)
    with pytest.raises(ScenarioError, match=r"No such file.*one of chatbot, "):
        load_scenario(tmp_path / "absent.toml")


def test_more_memory_than_there_is_needs_swap() -> None:
    scenario = node({"server|swap": None, "jobs|run|host_memory": "80 GiB"})
    with pytest.raises(ScenarioError, match="the kernel would kill"):
        next(samples(scenario, 0, 1))


def test_an_heir_changes_a_few_keys_and_removes_others(tmp_path: Path) -> None:
    heir = tmp_path / "heir.toml"
    heir.write_text(
        """
        extends = "training"
        title = "heir"
        [server]
        memory = "1 TiB"
        [server.mounts]
        "/scratch" = false
        [jobs.pretraining]
        checkpoint = false
        [jobs.pretraining.working]
        utilization_ratio = { square = { period = 10, low = 0.8, high = 0.9 } }
        """
    )
    base, scenario = load_scenario("training"), load_scenario(heir)
    assert scenario.server.memory_bytes == 2**40
    assert base.server.mounts.keys() - scenario.server.mounts.keys() == {"/scratch"}
    assert scenario.server.gpus == base.server.gpus
    (job,) = scenario.jobs
    assert job.checkpoint is None
    assert job.working["utilization_ratio"].period == 10
    assert job.working["power_ratio"] == base.jobs[0].working["power_ratio"]

    second = tmp_path / "second.toml"
    second.write_text('extends = "heir.toml"\n[server]\nmemory = "2 TiB"')
    assert load_scenario(second).server.memory_bytes == 2**41


def test_a_chain_of_heirs_that_bites_its_tail(tmp_path: Path) -> None:
    loop = tmp_path / "loop.toml"
    loop.write_text('extends = "loop.toml"')
    with pytest.raises(ScenarioError, match="extends"):
        load_scenario(loop)


def test_the_inventory_tells_what_the_server_is() -> None:
    inventory = node({"server|data_paths": ["/data"], "server|purpose": "training"}).inventory()
    told = inventory.to_json()
    assert told["memory_bytes"] == 64 * 2**30
    assert told["nics"] == [
        {"name": "eno1", "kind": "ethernet", "speed_bits_per_second": 10**9, "state": "up"}
    ]
    assert told["mounts"][1] == {"path": "/data", "fstype": "nfs4", "source": "nas:/data"}
    assert told["data_paths"] == ["/data"]
    first, second = told["gpus"]
    assert first["memory_bytes"] == 81559 * 2**20
    assert first["nvlink_peers"] == [second["uuid"]]
    assert first["compute_capability"] == "9.0"


@pytest.mark.parametrize(
    ("name", "peers"),
    [("NVIDIA L40S", [0, 0, 0, 0]), ("NVIDIA H100 NVL", [1, 1, 1, 1]), ("NVIDIA H200", [3] * 4)],
)
def test_links_are_those_of_the_card(name: str, peers: list[int]) -> None:
    document = changed({"server|gpus": [{"name": name, "count": 4}], "jobs": {}})
    gpus = read_scenario(document, "x").inventory().gpus
    assert [len(gpu.nvlink_peers or ()) for gpu in gpus] == peers
