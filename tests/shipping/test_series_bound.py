"""The number of InfluxDB series that a busy host makes in a week stays under a declared bound."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent.collectors.collector import Sources
from agent.collectors.disk import DiskCollector
from agent.collectors.gpu_process import SLOTS, GpuProcessCollector
from agent.collectors.network import NetworkCollector
from agent.engines.names import MOST, Names
from agent.engines.scrape import Target
from agent.inventory import take_inventory
from agent.nvml.types import GpuProcess
from telemetry.metrics import FAMILIES, family
from telemetry.window import Sample
from tests.collectors.test_processes import MACHINE, process
from tests.collectors.tree import plant

GPUS = 8
BOUND = {"gpu": GPUS, "gpu_process": GPUS * SLOTS, "mount": 32, "disk": 64, "nic": 48, "engine": 64}
"""Of a host with eight GPUs, for each window length (docs/influxdb.md)."""


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
    assert seen.keys() == {"gpu", "gpu_process"}
    for name, keys in seen.items():
        assert len(keys) <= BOUND[name], name
    assert len(seen["gpu_process"]) == 40


def mounted(week_hour: int) -> str:
    """The mounts of an hour: three pods, each with a volume of its own kinds, and a node's disk."""
    lines = ["29 1 8:1 / / rw - ext4 /dev/sda1 rw"]
    for pod in range(3):
        uid = f"{week_hour:08x}-0000-4000-8000-{pod:012x}"
        base = f"/var/lib/kubelet/pods/{uid}/volumes"
        for number, (path, kind) in enumerate(
            (
                (f"{base}/kubernetes.io~nfs/models", "nfs4"),
                (f"{base}/kubernetes.io~csi/pvc-{uid}/mount", "ceph"),
                (f"/var/lib/kubelet/plugins/csi/x/{uid.replace('-', '') * 2}/globalmount", "nfs"),
            )
        ):
            device = f"0:{100 + pod * 10 + number}"
            lines.append(f"{30 + pod * 10 + number} 29 {device} / {path} rw - {kind} nas:/x rw")
    return "\n".join(lines) + "\n"


def test_a_week_of_pods_makes_no_new_mounts(tmp_path: Path) -> None:
    names: set[str] = set()
    for hour in range(168):
        hostfs = plant(tmp_path, "--- /proc/self/mountinfo\n" + mounted(hour))
        found = take_inventory(hostfs).mounts
        assert len(found) == 10, "every volume is seen"
        names |= {mount.path for mount in found}
    assert len(names) == 10 <= BOUND["mount"]


def test_devices_of_all_kinds_are_bounded(tmp_path: Path) -> None:
    text = ""
    for number in range(200):
        text += f"--- /sys/block/nvme{number}n1/device/model\nx\n"
        text += f"--- /sys/block/nvme{number}n1/size\n1000\n"
        text += f"--- /sys/block/nvme{number}n1/stat\n{'1 ' * 11}\n"
        text += f"--- /sys/class/net/eth{number}/device/uevent\n\n"
        text += f"--- /sys/class/net/eth{number}/type\n1\n"
        for way in ("rx", "tx"):
            text += f"--- /sys/class/net/eth{number}/statistics/{way}_bytes\n1\n"
    hostfs = plant(tmp_path, text)
    for name, make in (("disk", DiskCollector), ("nic", NetworkCollector)):
        collector = make(Sources(hostfs=hostfs))
        sample = Sample(0.0, {})
        for now in (0.0, 1.0):
            collector.collect(now, sample)
        assert len(sample.rows) == BOUND[name]


@given(st.lists(st.frozensets(st.integers(1, 65_535), max_size=MOST), max_size=60))
def test_a_week_of_new_ports_makes_no_new_series(weeks: list[frozenset[int]]) -> None:
    names, seen = Names(), set()
    for ports in weeks:
        targets = [Target("127.0.0.1", port) for port in sorted(ports)]
        names.keep(targets)
        told = [names[target] for target in targets]
        assert len(set(told)) == len(told)
        names.keep(reversed(targets))
        assert [names[target] for target in targets] == told, (
            "a name stays while its engine is there"
        )
        seen |= set(told)
    assert len(seen) <= BOUND["engine"]


def test_an_engine_is_named_by_its_port_where_that_stays() -> None:
    names = Names()
    for random in (41_217, 38_011):
        chat, runner = Target("127.0.0.1", 8000), Target("127.0.0.1", random)
        names.keep([chat, runner])
        assert (names[chat], names[runner]) == ("8000", "other-0")


def test_no_tag_is_a_pid_a_command_or_a_job() -> None:
    tags = {tag for f in FAMILIES for tag in (*f.tags, *f.labels)}
    assert tags == {"gpu_uuid", "gpu_model", "slot", "port", "device", "mount"}
    assert family("gpu_process").tags == ("gpu_uuid", "slot")
