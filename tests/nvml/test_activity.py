"""Activity by GPM, links by their best source, MIG instances: through the child process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.nvml.gpm import ACTIVITY
from tests.nvml.conftest import Bench, by_index

Stage = Callable[..., Bench]
MIG = """gpus=2
gpu0.mig=1
gpu0.sm_active=70
gpu0.mig_instance=1,0,3g.40gb,40448,20000,80,5151,18000
gpu0.mig_instance=2,0,1g.10gb,9856,500,0
gpu0.mig_instance=3,0,2g.20gb,19968,100,10
gpu0.mig_instance=3,1,2g.20gb,19968,100,10
"""


def test_activity_follows_the_card_from_one_second_to_the_next(stage: Stage) -> None:
    bench = stage("gpu0.sm_active=square:10,0,90,0.5\n")
    first = bench.tick().gpus[0]
    assert not set(ACTIVITY) & set(first.values)
    seen = [bench.tick().gpus[0].values["sm_active_ratio"] for _ in range(10)]
    assert seen == pytest.approx([0.9, 0.9, 0.9, 0.9, 0, 0, 0, 0, 0, 0.9], abs=0.02)


def test_samples_closer_than_100_ms_are_not_compared(stage: Stage) -> None:
    bench = stage("gpu0.sm_active=50\n")
    bench.tick()
    bench.advance(0.05)
    assert "sm_active_ratio" not in bench.client.tick().gpus[0].values
    bench.advance(0.06)
    assert bench.client.tick().gpus[0].values["sm_active_ratio"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("gpu0.gpm=0\n", "this card has no GPM (Hopper and later have it)"),
        ("nvmlGpmQueryDeviceSupport=FUNCTION_NOT_FOUND\n", "driver R520"),
        ("nvmlGpmSampleGet=NO_PERMISSION\n", "no permission"),
    ],
)
def test_a_card_without_it_says_why(stage: Stage, scenario: str, reason: str) -> None:
    bench = stage(scenario)
    bench.tick()
    (gpu,) = bench.tick().gpus
    assert not set(ACTIVITY) & set(gpu.values)
    assert all(reason in gpu.unavailable[metric] for metric in ACTIVITY)
    assert "utilization_ratio" in gpu.values


def test_it_can_be_switched_off(fakenvml: Path, tmp_path: Path) -> None:
    bench = Bench(fakenvml, tmp_path, "gpus=1\n", 5.0, profiling=False)
    bench.tick()
    (gpu,) = bench.tick().gpus
    assert gpu.unavailable["sm_active_ratio"] == "switched off by [gpu] profiling = false"
    bench.client.close()
    bench.scenario.close()
    calls = (tmp_path / "calls").read_text() if (tmp_path / "calls").exists() else ""
    assert "nvmlGpm" not in calls


def test_more_than_all_the_time_is_no_reading(stage: Stage) -> None:
    """Some drivers told 130 % under MIG."""
    bench = stage("gpu0.sm_active=130\ngpu0.tensor=101\n")
    bench.tick()
    bench.tick()
    (gpu,) = bench.tick().gpus
    assert "sm_active_ratio" not in gpu.values
    assert gpu.values["tensor_active_ratio"] == 1.0
    assert bench.client.dropped_total()["sm_active_ratio"] >= 1


def test_without_byte_counters_pcie_and_nvlink_come_by_gpm(stage: Stage) -> None:
    bench = stage(
        "gpus=2\ngpu*.pcie_counters=0\ngpu*.pcie_rx_kbs=2000000\ngpu*.nvlink_rx_kbs=500000\n"
        "gpu1.nvlinks=0\n"
        + "".join(f"gpu*.field.{n}=NOT_SUPPORTED\n" for n in (138, 139, 202, 204))
    )
    bench.tick()
    gpus = by_index(bench.tick())
    assert gpus[0].values["pcie_rx_bytes_per_second"] == pytest.approx(2e9, rel=1e-6)
    assert gpus[0].values["nvlink_rx_bytes_per_second"] == pytest.approx(512e6, rel=1e-6)
    assert "nvlink_rx_bytes_per_second" not in gpus[1].values
    assert gpus[1].unavailable["nvlink_rx_bytes_per_second"] == "no NVLink is up"
    first, second = bench.client.inventory()
    assert (first.nvlink_links, second.nvlink_links) == (18, 0)


def test_nvlink_5_counts_bytes(stage: Stage) -> None:
    bench = stage(
        "gpu0.nvlink_rx_kbs=500000\n"
        + "".join(f"gpu0.field.{n}=NOT_SUPPORTED\n" for n in (138, 139))
    )
    bench.tick()
    values = bench.tick().gpus[0].values
    assert values["nvlink_rx_bytes_per_second"] == pytest.approx(512e6, rel=1e-6)


def test_memory_that_is_the_hosts_is_none_of_the_card(stage: Stage) -> None:
    bench = stage("gpu0.name=NVIDIA GB10\n")
    bench.tick()
    (gpu,) = bench.tick().gpus
    assert gpu.texts["memory_kind"] == "unified"
    assert "memory_total_bytes" not in gpu.values
    assert "unified" in gpu.unavailable["memory_used_bytes"]
    (info,) = bench.client.inventory()
    assert (info.memory_kind, info.memory_bytes) == ("unified", None)


def test_instances_have_rows_of_their_own_below_the_card(stage: Stage) -> None:
    bench = stage(MIG)
    bench.tick()
    tick = bench.tick()
    card = bench.uuid(0)
    gpus = {gpu.uuid: gpu for gpu in tick.gpus}
    assert list(gpus) == [
        card,
        *(f"{card}/{part}" for part in ("1/0", "2/0", "3/0", "3/1")),
        bench.uuid(1),
    ]
    busy = gpus[f"{card}/1/0"]
    assert busy.name == "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    assert busy.values["memory_used_bytes"] == 20000 << 20
    assert busy.values["memory_total_bytes"] == 40448 << 20
    assert busy.values["sm_active_ratio"] == pytest.approx(0.8)
    assert "utilization_ratio" not in busy.values
    assert busy.unavailable["utilization_ratio"] == "the driver does not tell it under MIG"
    assert gpus[f"{card}/2/0"].values["sm_active_ratio"] == 0.0
    assert "sm_active_ratio" not in gpus[f"{card}/3/0"].values
    assert "share this GPU instance" in gpus[f"{card}/3/0"].unavailable["sm_active_ratio"]
    assert "utilization_ratio" not in gpus[card].values
    assert "power_watts" in gpus[card].values
    (process,) = bench.client.processes()
    assert (process.gpu_uuid, process.pid) == (f"{card}/1/0", 5151)
    assert "instance" in bench.client.unavailable_processes()[card]["compute"]
    assert len(bench.client.inventory()[0].mig) == 4
