"""Whole machines, a folder each: what is read of them a second after the first look."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent.collectors import COLLECTORS, Sources
from agent.collectors.disk import DiskCollector
from agent.collectors.mount import MountCollector
from agent.host.hostfs import HostFs
from agent.inventory import take_inventory
from telemetry.metrics import family
from telemetry.window import Sample
from tests.collectors.tree import MACHINES, described, golden, plant


@pytest.mark.parametrize("name", sorted(path.name for path in MACHINES.iterdir()))
def test_machine(name: str, tmp_path: Path) -> None:
    folder = MACHINES / name
    hostfs = plant(tmp_path, (folder / "before.txt").read_text("utf-8"))
    inventory = take_inventory(hostfs, host="of-a-test").to_json()
    collectors = [make(Sources(hostfs=hostfs)) for make in COLLECTORS]
    first = Sample(1000.0, {})
    for collector in collectors:
        collector.collect(50.0, first)
        if isinstance(collector, MountCollector):
            collector.wait(10.0)
    plant(tmp_path, (folder / "after.txt").read_text("utf-8"))
    second = Sample(1001.0, {})
    for collector in collectors:
        collector.collect(51.0, second)
    unavailable = {c.name: r for c in collectors if (r := c.unavailable())}
    shown = described(second)
    for row in shown["rows"].values():  # the size of a file system is that of this machine's disk
        row.pop("size_bytes", None)
        row.pop("used_bytes", None)
    document = {"inventory": inventory, **shown, "unavailable": _rootless(unavailable, hostfs)}
    read, expected = golden(folder, document)
    assert read == expected


def _rootless(unavailable: dict[str, dict[str, str]], hostfs: HostFs) -> dict[str, dict[str, str]]:
    told: dict[str, dict[str, str]] = {}
    for name, reasons in unavailable.items():
        for metric, reason in reasons.items():
            if not metric.endswith("size_bytes"):  # nor is it for this machine to have the mounts
                told.setdefault(name, {})[metric] = reason.replace(hostfs.root, "")
    return told


def test_every_metric_is_declared(tmp_path: Path) -> None:
    for folder in MACHINES.iterdir():
        _, expected = golden(folder, {})
        for key, row in expected["rows"].items():
            declared = {metric.name for metric in family(key.split(" ")[0]).metrics}
            assert set(row) <= declared


def test_a_machine_without_anything_reads_as_absent(tmp_path: Path) -> None:
    collectors = [make(Sources(hostfs=HostFs(tmp_path))) for make in COLLECTORS]
    for now in (1.0, 2.0, 3.0):
        sample = Sample(now, {})
        for collector in collectors:
            collector.collect(now, sample)
        assert sample.rows == {}
        assert sample.texts == {}
    reasons = {name for collector in collectors for name in collector.unavailable()}
    for metric in ("cpu_busy_ratio", "memory_used_bytes", "pressure_io_some_ratio", "disk", "nic"):
        assert metric in reasons


def test_a_file_that_fails_later_costs_only_its_own_metrics(tmp_path: Path) -> None:
    folder = MACHINES / "trainer"
    hostfs = plant(tmp_path, (folder / "before.txt").read_text("utf-8"))
    collectors = [make(Sources(hostfs=hostfs)) for make in COLLECTORS]
    for collector in collectors:
        collector.collect(1.0, Sample(1.0, {}))
    shutil.rmtree(tmp_path / "sys/devices/pci0000:40/0000:41:00.0/nvme/nvme0/nvme0n1")
    (tmp_path / "proc/vmstat").write_text("garbage")
    sample = Sample(1.0, {})
    for now in (2.0, 40.0, 41.0):
        sample = Sample(now, {})
        for collector in collectors:
            collector.collect(now, sample)
    assert ("disk", "sda") in sample.rows
    assert ("disk", "nvme0n1") not in sample.rows
    assert "memory_used_bytes" in sample.rows["host",]
    assert "major_faults_per_second" not in sample.rows["host",]


def test_a_loop_device_counts_only_where_it_is_asked_for(tmp_path: Path) -> None:
    hostfs = plant(tmp_path, (MACHINES / "trainer" / "before.txt").read_text("utf-8"))
    collector = DiskCollector(Sources(hostfs=hostfs))
    for now, names in ((1.0, frozenset[str]()), (2.0, frozenset({"loop3"}))):
        collector.also(names)
        collector.collect(now, Sample(now, {}))
        sample = Sample(now + 0.5, {})
        collector.collect(now + 0.5, sample)
        assert (("disk", "loop3") in sample.rows) is bool(names)
        assert ("disk", "sda") in sample.rows
