"""Limits and pressure of GPU processes' cgroups, in both versions and from within containers."""

from pathlib import Path

import pytest

from agent.host.cgroups import Cgroups
from agent.host.hostfs import HostFs
from agent.inventory import take_inventory
from telemetry.inventory import Limits
from telemetry.window import Sample
from tests.collectors.test_processes import MACHINE, UUID, Driver, collector, on_gpu, process, read
from tests.collectors.tree import plant

V2 = (
    "--- /proc/self/mountinfo\n"
    "25 1 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
    "--- /sys/devices/system/cpu/online\n0-63\n"
)
JOB = "/system.slice/slurmstepd.scope/job_7"
TASK = f"{JOB}/step_0/user/task_0"
GIB = 1 << 30


def pressure(folder: str, some: int, full: int) -> str:
    """The files of a v2 cgroup; totals in microseconds."""
    return "".join(
        f"--- /sys/fs/cgroup{folder}/{resource}.pressure\n"
        f"some avg10=0.00 avg60=0.00 avg300=0.00 total={some}\n"
        f"full avg10=0.00 avg60=0.00 avg300=0.00 total={full}\n"
        for resource in ("cpu", "io", "memory")
    )


def limited() -> str:
    """A Slurm job of 16 cores and 128 GiB: the limits are the job's, the tasks are below it."""
    return (
        f"--- /sys/fs/cgroup{JOB}/cpu.max\n1600000 100000\n"
        f"--- /sys/fs/cgroup{JOB}/memory.max\n{128 * GIB}\n"
        f"--- /sys/fs/cgroup{JOB}/memory.high\n{120 * GIB}\n"
        f"--- /sys/fs/cgroup{TASK}/cpu.max\nmax 100000\n"
        f"--- /sys/fs/cgroup{TASK}/memory.max\nmax\n"
        f"--- /sys/fs/cgroup{TASK}/memory.high\nmax\n"
        f"--- /sys/fs/cgroup{TASK}/cpuset.cpus.effective\n0-11,32-35\n"
    )


def test_a_limit_above_the_process_holds_for_it(tmp_path: Path) -> None:
    hostfs = plant(tmp_path, V2 + limited())
    assert Cgroups(hostfs).limits(f"0::{TASK}\n", 0.0) == Limits(
        cpu_cores=16.0,
        cpuset_threads=16,
        memory_max_bytes=128 * GIB,
        memory_high_bytes=120 * GIB,
    )


def test_no_limit_is_none(tmp_path: Path) -> None:
    hostfs = plant(
        tmp_path,
        V2
        + "--- /sys/fs/cgroup/user.slice/cpu.max\nmax 100000\n"
        + "--- /sys/fs/cgroup/user.slice/memory.max\nmax\n"
        + "--- /sys/fs/cgroup/user.slice/cpuset.cpus.effective\n0-63\n",
    )
    assert Cgroups(hostfs).limits("0::/user.slice", 0.0) == Limits()


def test_version_1_has_limits_and_no_pressure(tmp_path: Path) -> None:
    pod = "/kubepods/burstable/pod1/c1"
    hostfs = plant(
        tmp_path,
        "--- /proc/self/mountinfo\n"
        "31 1 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "32 1 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "33 1 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "34 1 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "--- /sys/devices/system/cpu/online\n0-7\n"
        f"--- /sys/fs/cgroup/cpu,cpuacct{pod}/cpu.cfs_quota_us\n350000\n"
        f"--- /sys/fs/cgroup/cpu,cpuacct{pod}/cpu.cfs_period_us\n100000\n"
        "--- /sys/fs/cgroup/cpu,cpuacct/kubepods/cpu.cfs_quota_us\n-1\n"
        "--- /sys/fs/cgroup/cpu,cpuacct/kubepods/cpu.cfs_period_us\n100000\n"
        f"--- /sys/fs/cgroup/memory{pod}/memory.limit_in_bytes\n9223372036854771712\n"
        f"--- /sys/fs/cgroup/memory/kubepods/memory.limit_in_bytes\n{8 * GIB}\n"
        f"--- /sys/fs/cgroup/cpuset{pod}/cpuset.effective_cpus\n2-3\n",
    )
    text = f"9:memory:{pod}\n8:cpuset:{pod}\n3:cpu,cpuacct:{pod}\n1:name=systemd:{pod}\n0::/\n"
    cgroups = Cgroups(hostfs)
    assert cgroups.limits(text, 0.0) == Limits(3.5, 2, 8 * GIB)
    assert cgroups.pressure(text, 0.0) == {}
    assert "version 1" in (cgroups.reason(text) or "")


def test_a_container_that_sees_its_own_part_alone(tmp_path: Path) -> None:
    """cgroupfs mounted with its root inside, as Docker does with version 1."""
    hostfs = plant(
        tmp_path,
        "--- /proc/self/mountinfo\n"
        "32 1 0:30 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
        f"--- /sys/fs/cgroup/memory/memory.limit_in_bytes\n{4 * GIB}\n",
    )
    cgroups = Cgroups(hostfs)
    assert cgroups.limits("9:memory:/docker/abc", 0.0).memory_max_bytes == 4 * GIB
    assert cgroups.limits("9:memory:/docker/abcdef", 0.0) == Limits()
    assert take_inventory(hostfs).limits == Limits(memory_max_bytes=4 * GIB)


def test_a_cgroup_out_of_our_namespace_is_not_made_up(tmp_path: Path) -> None:
    hostfs = plant(tmp_path, V2 + "--- /sys/fs/cgroup/memory.max\n1024\n")
    cgroups = Cgroups(hostfs)
    for text in ("0::/../../other", "0::/..", "odd", ""):
        assert cgroups.limits(text, 0.0) == Limits()
        assert cgroups.pressure(text, 0.0) == {}
        assert "not to be seen" in (cgroups.reason(text) or "")


def test_pressure_is_the_share_of_the_time_between_readings(tmp_path: Path) -> None:
    text = f"0::{TASK}"
    hostfs = plant(tmp_path, V2 + pressure(TASK, 1_000_000, 500_000))
    cgroups = Cgroups(hostfs, every=15.0)
    assert cgroups.pressure(text, 0.0) == {}
    plant(tmp_path, pressure(TASK, 1_250_000, 500_000))
    first = cgroups.pressure(text, 1.0)
    assert first == pytest.approx({f"{r}_some": 0.25 for r in ("cpu", "io", "memory")} | {
        f"{r}_full": 0.0 for r in ("cpu", "io", "memory")
    })  # fmt: skip
    assert cgroups.pressure(text, 1.0) == first, "another process of the same cgroup"
    plant(tmp_path, pressure(TASK, 5_000_000, 500_000))
    assert cgroups.pressure(text, 6.0) == {}, "not due"
    assert cgroups.pressure(text, 16.0)["io_some"] == pytest.approx(0.25)
    plant(tmp_path, pressure(TASK, 0, 0))
    assert cgroups.pressure(text, 31.0) == {}, "a cgroup of the same name began anew"


def test_processes_and_inventory_tell_it(tmp_path: Path) -> None:
    base = MACHINE + V2 + limited() + process(100, cgroup=f"0::{TASK}")
    hostfs = plant(tmp_path, base + pressure(TASK, 0, 0))
    reader = collector(hostfs, Driver(on_gpu(100)))
    read(reader, 0.0)
    plant(tmp_path, pressure(TASK, 400_000, 100_000))
    row = read(reader, 1.0).rows["gpu_process", UUID, "0"]
    assert row["cpu_limit_cores"] == 16
    assert row["memory_limit_bytes"] == 128 * GIB
    assert row["memory_high_bytes"] == 120 * GIB
    assert row["pressure_io_some_ratio"] == pytest.approx(0.4)
    assert row["pressure_memory_full_ratio"] == pytest.approx(0.1)
    (seen,) = reader.job_limits
    assert (seen.owner_kind, seen.cpu_cores) == ("slurm_job", 16.0)
    assert "gpu_process pressure" not in reader.unavailable()


def test_a_process_of_the_root_cgroup_has_the_hosts_pressure(tmp_path: Path) -> None:
    reader = collector(plant(tmp_path, MACHINE + V2 + process(100)), Driver(on_gpu(100)))
    read(reader, 0.0)
    row = read(reader, 1.0).rows["gpu_process", UUID, "0"]
    assert not [name for name in row if name.startswith("pressure_")]
    assert "root cgroup" in reader.unavailable()["gpu_process pressure"]


def test_this_kernel_is_read() -> None:
    """Whatever this machine has, nothing is raised and nothing is invented."""
    hostfs = HostFs()
    text = hostfs.maybe("/proc/self/cgroup") or ""
    cgroups = Cgroups(hostfs)
    limits = cgroups.limits(text, 0.0)
    assert all(value is None or value > 0 for value in (limits.cpu_cores, limits.memory_max_bytes))
    cgroups.pressure(text, 0.0)
    assert all(0 <= share <= 1 for share in cgroups.pressure(text, 1.0).values())


def test_io_is_told_in_calls_too(tmp_path: Path) -> None:
    def counted(calls: int) -> str:
        return process(100).replace("syscr: 9\nsyscw: 9", f"syscr: {calls}\nsyscw: {2 * calls}")

    reader = collector(plant(tmp_path, MACHINE + counted(0)), Driver(on_gpu(100)))
    read(reader, 0.0)
    plant(tmp_path, counted(600))
    sample: Sample = read(reader, 2.0)
    row = sample.rows["gpu_process", UUID, "0"]
    assert (row["read_calls_per_second"], row["write_calls_per_second"]) == (300.0, 600.0)
