"""From where a job reads its data: loop devices, network and FUSE mounts, by its open files."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.host.data_files import DataFiles
from agent.host.hostfs import HostFs
from tests.collectors.tree import plant

MOUNTS = """--- /proc/100/mountinfo
40 1 7:3 / /data ro - squashfs /dev/loop3 ro
41 1 7:4 / /snap/x ro - squashfs /dev/loop4 ro
42 1 0:50 / /bucket rw - fuse.s3fs s3fs rw
43 1 0:51 / /home rw - nfs4 server:/home rw
44 1 8:1 / / rw - ext4 /dev/sda1 rw
"""


def test_files_that_a_process_and_its_workers_have_open_tell_where_the_data_are(
    tmp_path: Path,
) -> None:
    hostfs = plant(
        tmp_path,
        f"{MOUNTS}--- /proc/100/fd/3 -> /data/train/shard-000.tar\n"
        "--- /proc/100/fd/4 -> /dev/null\n--- /proc/100/fd/5 -> socket:[1]\n"
        "--- /proc/101/fd/3 -> /bucket/shard-001.tar\n",
    )
    files = DataFiles(hostfs)
    files.look(100, 7, (101,), 1.0)
    assert files.loops() == {"loop3"}
    assert files.numbers() == frozenset({"0:50"})
    files.forget(frozenset())
    assert files.loops() == frozenset()
    assert files.numbers() is None


def test_a_file_that_is_shut_for_a_moment_still_counts_and_one_that_stays_shut_does_not(
    tmp_path: Path,
) -> None:
    hostfs = plant(tmp_path, f"{MOUNTS}--- /proc/100/fd/3 -> /bucket/a\n")
    files = DataFiles(hostfs)
    files.look(100, 7, (), 0.0)
    (tmp_path / "proc/100/fd/3").unlink()
    plant(tmp_path, "--- /proc/100/fd/4 -> /dev/null\n")
    for now, numbers in ((10.0, {"0:50"}), (40.0, {"0:50"}), (80.0, set())):
        files.look(100, 7, (), now)
        assert files.numbers() == frozenset(numbers)


def test_nothing_of_a_local_disk_is_told_and_no_file_is_looked_at(tmp_path: Path) -> None:
    plant(tmp_path, "--- /proc/100/mountinfo\n44 1 8:1 / / rw - ext4 /dev/sda1 rw\n")

    class Refusing(HostFs):
        def names(self, path: str) -> list[str]:
            raise AssertionError(path)

    files = DataFiles(Refusing(tmp_path))
    files.look(100, 7, (), 1.0)
    assert files.loops() == files.numbers() == frozenset()


def test_of_a_process_that_may_not_be_looked_into_nothing_is_known(tmp_path: Path) -> None:
    hostfs = plant(tmp_path, f"{MOUNTS}--- /proc/100/fd/3 -> /bucket/a\n")

    class Refusing(HostFs):
        def names(self, path: str) -> list[str]:
            return []

    files = DataFiles(Refusing(hostfs.root))
    with pytest.raises(PermissionError):
        files.look(100, 7, (), 1.0)
    assert files.numbers() is None  # not "none": it is not known
