"""The fake NVML library, through the real pynvml in a process of its own."""

import json
import os
import signal
import struct
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.fakenvml.staged import Scenario
from tests.require import need, need_program

PRELUDE = """
import json, struct, sys, pynvml as n
def at(seconds):
    with open(sys.argv[1], "r+b") as clock: clock.write(struct.pack("d", seconds))
def code(call, *arguments):
    try: call(*arguments)
    except n.NVMLError as error: return error.value
    return 0
n.nvmlInit()
h = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
"""


@pytest.fixture
def staged(fakenvml: Path, tmp_path: Path) -> Any:
    def run(scenario: str, program: str, limit: float = 20) -> Any:
        staged = Scenario(fakenvml, tmp_path, scenario, stepped=True)
        done = subprocess.run(
            [sys.executable, "-c", PRELUDE + program, str(tmp_path / "clock")],
            env={**os.environ, **staged.environment},
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
        if done.returncode < 0:
            return signal.Signals(-done.returncode)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_struct_layouts_equal_nvidias_header(fakenvml: Path) -> None:
    make = need_program("make", "make")
    headers = sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/*/include/nvml.h"))
    need(headers, "nvml.h", "pip install nvidia-nvml-dev")
    done = subprocess.run(
        [make, "-C", fakenvml.parent, "check", f"NVML_INC={headers[0].parent}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ABI equal" in done.stdout, done.stderr


def test_ten_minutes_pass_at_once_and_counters_are_integrals(staged: Any) -> None:
    before, after = staged(
        "gpu0.power_w=300\ngpu0.pcie_rx_kbs=square:10,0,1000,0.5\n",
        """
def read(): return [f.value.ullVal for f in n.nvmlDeviceGetFieldValues(h[0], [
    n.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, n.NVML_FI_DEV_PCIE_COUNT_RX_BYTES])]
out = [read()]
for second in range(1, 601): at(second); last = read()
print(json.dumps(out + [last]))
""",
    )
    assert after[0] - before[0] == pytest.approx(300_000 * 600, rel=1e-6)  # millijoules
    assert after[1] - before[1] == pytest.approx(500_000 * 600, rel=1e-3)


def test_gpus_vanish_return_and_change_places(staged: Any) -> None:
    seen = staged(
        "gpus=3\ngpu1.lost=5-10\ngpu2.gone=5-10\norder=2,1,0@20\n",
        """
out = []
for t in (0, 6, 12, 25):
    at(t)
    out.append([n.nvmlDeviceGetCount(), [code(n.nvmlDeviceGetTemperature, x, 0) for x in h],
                n.nvmlDeviceGetIndex(h[0])])
out.append(code(n.nvmlDeviceGetTemperature, n.nvmlDeviceGetHandleByIndex(1), 0))
print(json.dumps(out))
""",
    )
    lost = 15  # NVML_ERROR_GPU_IS_LOST; the handle of before stays lost
    assert seen == [
        [3, [0, 0, 0], 0],
        [2, [0, lost, lost], 0],
        [3, [0, lost, 0], 0],
        [3, [0, lost, 0], 2],
        0,
    ]


def test_a_crashing_call_kills_its_caller_from_its_time_on(staged: Any) -> None:
    scenario = "gpu0.nvmlDeviceGetTemperature=CRASH@5\n"
    call = "at({}); print(code(n.nvmlDeviceGetTemperature, h[0], 0))"
    assert staged(scenario, call.format(4)) == 0
    assert staged(scenario, call.format(5)) == signal.SIGSEGV


def test_a_hanging_call_never_returns(staged: Any) -> None:
    scenario = "gpus=2\ngpu1.nvmlDeviceGetTemperature=HANG\n"
    assert staged(scenario, "print(code(n.nvmlDeviceGetTemperature, h[0], 0))") == 0
    with pytest.raises(subprocess.TimeoutExpired):
        staged(scenario, "n.nvmlDeviceGetTemperature(h[1], 0)", limit=1)


def test_a_changed_scenario_is_a_new_driver_at_the_next_init(
    fakenvml: Path, tmp_path: Path
) -> None:
    staged = Scenario(fakenvml, tmp_path, "driver_version=1\n")
    program = """
import os, pynvml as n
n.nvmlInit(); print(n.nvmlSystemGetDriverVersion())
with open(os.environ["FAKENVML_SCENARIO"], "w") as f: f.write("driver_version=22\\n")
print(n.nvmlSystemGetDriverVersion()); n.nvmlInit(); print(n.nvmlSystemGetDriverVersion())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **staged.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", "1", "22"]


def test_names_and_pids_are_given_as_written(staged: Any) -> None:
    name_error, pids = staged(
        "gpu0.name=GPU\\xf8\ngpu0.proc=4294967295,C,100,5\ngpu0.proc=77,C,-1,5\n",
        """
try: n.nvmlDeviceGetName(h[0]); problem = None
except UnicodeDecodeError as error: problem = str(error)
print(json.dumps([problem, [[p.pid, p.usedGpuMemory]
    for p in n.nvmlDeviceGetComputeRunningProcesses(h[0])]]))
""",
    )
    assert "0xf8" in name_error
    assert pids == [[4294967295, 100 << 20], [77, None]]


def test_throttle_times_follow_the_reasons(staged: Any) -> None:
    assert staged(
        "gpu0.throttle=square:10,0,4,0.5\n",  # the software power cap, half of the time
        """
at(100)
f = n.nvmlDeviceGetFieldValues(h[0], [n.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP,
                                      n.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN])
print(json.dumps([round(v.value.ullVal / 1e9) for v in f]))
""",
    ) == [50, 0]


def test_mig_instances_are_listed_under_their_card(staged: Any) -> None:
    assert staged(
        "gpu0.mig=1\ngpu0.mig_instance=7,0,1g.10gb,9856\n",
        """
m = n.nvmlDeviceGetMigDeviceHandleByIndex(h[0], 0)
print(json.dumps([n.nvmlDeviceGetGpuInstanceId(m), n.nvmlDeviceGetMemoryInfo(m).total >> 20,
    n.nvmlDeviceGetName(m)[-10:], code(n.nvmlDeviceGetMigDeviceHandleByIndex, h[0], 1),
    code(n.nvmlDeviceGetUtilizationRates, h[0])]))
""",
    ) == [7, 9856, "MIG 1g.10gb"[-10:], 6, 3]


def test_a_live_signal_is_what_another_program_writes(staged: Any, tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.write_bytes(struct.pack("dd", 3.0, 41.0))
    program = f"""
first = n.nvmlDeviceGetUtilizationRates(h[0]).gpu
with open({str(live)!r}, "r+b") as f: f.seek(8); f.write(struct.pack("d", 87.0))
print(json.dumps([first, n.nvmlDeviceGetUtilizationRates(h[0]).gpu]))
"""
    assert staged(f"gpus=1\ngpu0.util=live:{live},1\n", program) == [41, 87]
