"""What a GPU's readings are: the real pynvml on the fake library, through the child process."""

import time
from collections.abc import Callable

import pytest

from agent.nvml.client import GpuProcess
from telemetry.metrics import GPU
from tests.nvml.conftest import Bench, by_index

Stage = Callable[..., Bench]
FULL = """gpus=1
gpu0.util=37
gpu0.memutil=21
gpu0.mem_total_mib=81920
gpu0.mem_used_mib=40960
gpu0.reserved_mib=512
gpu0.power_w=432.5
gpu0.power_limit_w=700
gpu0.temp=61
gpu0.sm_clock=1755
gpu0.mem_clock=2619
gpu0.pcie_rx_kbs=2000000
gpu0.pcie_tx_kbs=300000
gpu0.nvlink_rx_kbs=1000
gpu0.nvlink_tx_kbs=2000
gpu0.gen=4
gpu0.width=8
gpu0.mem_temp=70
gpu0.sm_active=62
gpu0.sm_occ=31
gpu0.tensor=44
gpu0.dram_bw=55
gpu0.enc=3
gpu0.dec=12
gpu0.pcie_replay=4
"""


def test_every_reading_has_its_unit_and_is_a_declared_metric(stage: Stage) -> None:
    bench = stage(FULL)
    bench.tick()
    (gpu,) = bench.tick().gpus
    assert gpu.values == pytest.approx(
        {
            "utilization_ratio": 0.37,
            "memory_utilization_ratio": 0.21,
            "memory_used_bytes": 40960 << 20,
            "memory_total_bytes": 81920 << 20,
            "memory_reserved_bytes": 512 << 20,
            "power_watts": 432.5,
            "power_limit_watts": 700,
            "energy_joules_total": 1_000_000 + 2 * 432.5,  # the fake begins at a million
            "temperature_celsius": 61,
            "memory_temperature_celsius": 70,
            "sm_active_ratio": 0.62,
            "sm_occupancy_ratio": 0.31,
            "tensor_active_ratio": 0.44,
            "dram_active_ratio": 0.55,
            "encoder_ratio": 0.03,
            "decoder_ratio": 0.12,
            "pcie_replays_total": 4,
            "sm_clock_hertz": 1.755e9,
            "memory_clock_hertz": 2.619e9,
            "pcie_rx_bytes_per_second": 2e9,
            "pcie_tx_bytes_per_second": 3e8,
            "pcie_link_generation": 4,
            "pcie_link_width": 8,
            "nvlink_rx_bytes_per_second": 1_024_000,
            "nvlink_tx_bytes_per_second": 2_048_000,
            "throttle_thermal_ratio": 0,
            "throttle_power_ratio": 0,
            "throttle_power_cap_ratio": 0,
            "ecc_uncorrected_errors": 0,
            "remapped_rows_uncorrected": 0,
            "remap_pending": 0,
            "remap_failed": 0,
            "xid_hardware_errors": 0,
            "xid_application_errors": 0,
        },
        rel=1e-6,
    )
    assert set(gpu.values) <= {metric.name for metric in GPU.metrics}
    assert set(gpu.texts) <= set(GPU.texts)
    assert gpu.texts == {"memory_api": "v2"}
    assert (gpu.unavailable, gpu.error) == ({}, None)


def test_eight_gpus_one_without_utilisation_and_one_lost(stage: Stage) -> None:
    bench = stage("gpus=8\ngpu2.nvmlDeviceGetUtilizationRates=NOT_SUPPORTED\ngpu5.lost=0\n")
    bench.tick()
    gpus = by_index(bench.tick())
    assert list(gpus) == list(range(8))
    assert gpus[5].error == "GPU is lost"
    assert (gpus[5].uuid, gpus[5].name, gpus[5].values) == (None, None, {})
    assert "utilization_ratio" not in gpus[2].values
    assert gpus[2].unavailable == dict.fromkeys(
        ("utilization_ratio", "memory_utilization_ratio"), "Not Supported"
    )
    for index in (0, 1, 3, 4, 6, 7):
        assert set(gpus[index].values) - set(gpus[2].values) == set(gpus[2].unavailable)
        assert gpus[index].error is None


@pytest.mark.parametrize("code", ["FUNCTION_NOT_FOUND", "ARGUMENT_VERSION_MISMATCH", "UNKNOWN"])
def test_memory_falls_back_to_the_first_version_once_and_says_so(stage: Stage, code: str) -> None:
    bench = stage(
        "gpu0.mem_used_mib=10\ngpu0.reserved_mib=900\n"
        f"gpu0.nvmlDeviceGetMemoryInfo_v2={code}@0-1.5\n"
    )
    for _ in range(3):  # the second version answers from the second tick on: it is not mixed in
        (gpu,) = bench.tick().gpus
        assert gpu.texts == {"memory_api": "v1"}
        assert gpu.values["memory_used_bytes"] == 910 << 20
        assert "memory_reserved_bytes" not in gpu.values
        assert "memory_reserved_bytes" in gpu.unavailable


@pytest.mark.parametrize(
    ("fault", "metric", "value"),
    [
        ("gpu0.field.185=NOT_SUPPORTED", "power_watts", 350.0),
        ("gpu0.field.83=NOT_SUPPORTED", "energy_joules_total", 1_000_700.0),
        ("gpu0.nvmlDeviceGetTemperature=DEPRECATED", "temperature_celsius", 55),
        ("gpu0.field.270=INVALID_ARGUMENT\ngpu0.throttle=64", "throttle_thermal_ratio", 1.0),
        ("nvmlDeviceGetFieldValues=FUNCTION_NOT_FOUND", "power_watts", 350.0),
    ],
)
def test_another_call_gives_what_one_lacks(
    stage: Stage, fault: str, metric: str, value: float
) -> None:
    bench = stage(fault + "\n")
    bench.tick()
    (gpu,) = bench.tick().gpus
    assert gpu.values[metric] == value
    assert metric not in gpu.unavailable


def test_a_narrow_pcie_counter_wraps(stage: Stage) -> None:
    bench = stage(
        "gpu0.max_gen=3\ngpu0.max_width=1\ngpu0.pcie_counter_bits=32\ngpu0.pcie_rx_kbs=500000\n"
        "gpu0.pcie_tx_kbs=100000\ngpu0.pcie_counter_start=4000000000\n"
    )
    bench.tick()
    rates = [bench.tick().gpus[0].values for _ in range(12)]
    assert [r["pcie_rx_bytes_per_second"] for r in rates] == pytest.approx([5e8] * 12)
    assert [r["pcie_tx_bytes_per_second"] for r in rates] == pytest.approx([1e8] * 12)


@pytest.mark.parametrize("counters", ["pcie_counters=0", "pcie_counter_bits=32"])
def test_without_a_usable_byte_counter_pcie_is_read_outside_the_tick(
    stage: Stage, counters: str
) -> None:
    bench = stage(f"gpu0.gpm=0\ngpu0.{counters}\ngpu0.pcie_rx_kbs=2000000\ngpu0.pcie_tx_kbs=100\n")
    tick = bench.until(lambda tick: "pcie_rx_bytes_per_second" in tick.gpus[0].values)
    assert tick.gpus[0].values["pcie_rx_bytes_per_second"] == 2e9
    assert tick.gpus[0].values["pcie_tx_bytes_per_second"] == 1e5


def test_throughput_above_the_link_is_dropped_and_counted(stage: Stage) -> None:
    bench = stage(
        "gpu0.gpm=0\ngpu0.pcie_counters=0\ngpu0.max_gen=3\ngpu0.pcie_rx_kbs=17000000\ngpu0.pcie_tx_kbs=15000000\n"
    )
    tick = bench.until(lambda tick: "pcie_tx_bytes_per_second" in tick.gpus[0].values)
    assert tick.gpus[0].values["pcie_tx_bytes_per_second"] == 1.5e10
    assert "pcie_rx_bytes_per_second" not in tick.gpus[0].values
    assert bench.client.dropped_total()["pcie_rx_bytes_per_second"] >= 1


def test_throttling_is_the_share_of_time_by_its_kind(stage: Stage) -> None:
    # 0x4 the software power cap, 0x20 and 0x40 heat, 0x80 the power brake (nvml.h)
    bench = stage("gpus=3\ngpu0.throttle=square:1,0,4,0.25\ngpu1.throttle=96\ngpu2.throttle=128\n")
    bench.tick()
    gpus = by_index(bench.tick())
    kinds = ("throttle_power_cap_ratio", "throttle_thermal_ratio", "throttle_power_ratio")
    seen = [[gpus[i].values[kind] for kind in kinds] for i in range(3)]
    assert seen == [pytest.approx([0.25, 0, 0], abs=0.011), [0, 1, 0], [0, 0, 1]]


def test_names_that_are_no_utf8_are_shown_as_escapes(stage: Stage) -> None:
    (gpu,) = stage("gpu0.name=GPU\\xf8\\xff 80GB\n").tick().gpus
    assert gpu.name == "GPU\\xf8\\xff 80GB"


def test_sentinels_are_absence(stage: Stage) -> None:
    bench = stage("gpu0.power_limit_w=4294967.295\ngpu0.temp=4294967295\n")
    bench.tick()
    (gpu,) = bench.tick().gpus
    assert "power_limit_watts" not in gpu.values
    assert "temperature_celsius" not in gpu.values
    assert {"power_limit_watts", "temperature_celsius"} <= set(gpu.unavailable)


def test_processes_with_memory_share_and_kind(stage: Stage) -> None:
    bench = stage(
        "gpus=2\ngpu0.proc=4242,C,20000,50\ngpu0.proc=4343,G,-1,5\ngpu1.proc=4242,C,100,7\n"
    )
    bench.tick()
    bench.tick()
    first, second = bench.uuid(0), bench.uuid(1)
    assert set(bench.client.processes()) == {
        GpuProcess(first, 4242, 20000 << 20, 0.5, "compute"),
        GpuProcess(first, 4343, None, 0.05, "graphics"),
        GpuProcess(second, 4242, 100 << 20, 0.07, "compute"),
    }


def test_samples_of_processes_that_were_seen_are_not_counted_again(stage: Stage) -> None:
    bench = stage("gpu0.proc=4242,C,100,20\ngpu0.proc_old_sm=90\n")
    shares = []
    for _ in range(3):
        bench.tick()
        shares.append(bench.client.processes()[0].sm_ratio)
        time.sleep(0.2)  # the library has a new sample each sixth of a second
    assert [share for share in shares if share is not None] == [0.2, 0.2]


def test_processes_that_cannot_be_are_dropped_and_counted(stage: Stage) -> None:
    bench = stage(
        "gpu0.mem_total_mib=1000\ngpu0.proc=4294967295,C,10,1\ngpu0.proc=0,C,10,1\n"
        "gpu0.proc=77,C,2000,1\ngpu0.proc=78,C,900,1\n"
    )
    bench.tick()
    assert [process.pid for process in bench.client.processes()] == [78]
    bench.tick()  # tells the count of the first
    assert bench.client.dropped_total()["process"] >= 3


def test_a_list_in_another_layout_is_read_by_the_older_version(stage: Stage) -> None:
    lines = "".join(f"gpu0.proc={pid},C,2,1\n" for pid in range(101, 107))
    bench = stage(f"gpu0.proc_stride=32\n{lines}")
    bench.tick()
    assert [process.pid for process in bench.client.processes()] == list(range(101, 107))


def test_hundreds_of_processes_are_all_listed(stage: Stage) -> None:
    lines = "".join(f"gpu0.proc={pid},C,2,1\n" for pid in range(1000, 1300))
    bench = stage(lines)
    bench.tick()
    assert len(bench.client.processes()) == 300


def test_processes_that_may_not_be_listed_are_absent_with_the_reason(stage: Stage) -> None:
    bench = stage(
        "gpu0.proc=77,C,2,1\nnvmlDeviceGetComputeRunningProcesses_v3=NO_PERMISSION\n"
        "nvmlDeviceGetComputeRunningProcesses_v2=NO_PERMISSION\n"
    )
    bench.tick()
    assert bench.client.processes() == ()
    assert bench.client.unavailable_processes() == {bench.uuid(0): {"compute": "no permission"}}


def test_the_inventory_tells_card_link_peers_and_instances(stage: Stage) -> None:
    bench = stage(
        "gpus=2\ngpu0.mig=1\ngpu0.mig_instance=7,0,1g.10gb,9856\ngpu0.max_gen=4\ngpu0.gen=4\n"
        "gpu1.nvlinks=0\ngpu1.pci_device_id=0x26b910de\n"
    )
    bench.tick()
    first, second = bench.client.inventory()
    assert (first.pci_device_id, second.pci_device_id) == ("2330", "26b9")
    assert first.pci_bus_id == "00000000:10:00.0"
    assert first.compute_capability == "9.0"
    assert first.memory_bytes == 81559 << 20
    assert first.pcie is not None
    assert (first.pcie.generation, first.pcie.max_generation) == (4, 5)
    assert (first.pcie.slot_max_generation, first.pcie.max_width) == (4, 16)
    assert [(m.gi, m.ci, m.profile, m.memory_bytes) for m in first.mig] == [
        (7, 0, "1g.10gb", 9856 << 20)
    ]
    assert (first.nvlink_peers, second.nvlink_peers) == ((), ())
    assert bench.client.system["driver_version"] == "550.90.07"
