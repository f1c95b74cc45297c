"""Which mounts matter, and servers that do not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.background import BLOCKED, Background
from agent.collectors.collector import Sources
from agent.collectors.mount import MountCollector
from agent.host.hostfs import HostFs
from agent.host.mounts import holding, parse_mountinfo, relevant
from agent.host.netmounts import parse_cifs_stats, parse_mountstats
from telemetry.window import Sample
from tests.collectors.tree import plant


def table(*mounts: tuple[str, str]) -> str:
    return "".join(
        f"{i} 1 0:{i} / {path} rw - {fstype} source{i} rw\n"
        for i, (path, fstype) in enumerate(mounts, 20)
    )


def test_a_path_lies_on_the_longest_and_last_mount() -> None:
    mounts = parse_mountinfo(
        table(("/", "ext4"), ("/data", "nfs"), ("/data2", "xfs"), ("/data", "xfs"))
    )
    found = holding(mounts, "/data/set/a")
    assert found is not None
    assert (found.path, found.fstype) == ("/data", "xfs")
    for path, place in (("/data2", "/data2"), ("/dat", "/"), ("/data", "/data")):
        found = holding(mounts, path)
        assert found is not None
        assert found.path == place


def test_the_mount_of_a_declared_data_path_is_there_whatever_it_is() -> None:
    mounts = parse_mountinfo(table(("/", "overlay"), ("/dev/shm", "tmpfs"), ("/proc", "proc")))
    assert relevant(mounts) == []
    assert [m.path for m in relevant(mounts, ["/dev/shm/cache", "/srv/x"])] == ["/", "/dev/shm"]


def test_mounts_are_bounded_and_data_paths_come_first() -> None:
    many = [(f"/vol{i}", "nfs4") for i in range(100)]
    mounts = parse_mountinfo(table(("/", "ext4"), *many))
    chosen = [m.path for m in relevant(mounts, ["/vol99/x"])]
    assert len(chosen) == 32
    assert "/vol99" in chosen


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=400))
def test_no_text_breaks_the_tables(text: str) -> None:
    parse_mountinfo(text)
    parse_mountstats(b"device x mounted on /x with fstype nfs4\n" + text.encode())
    parse_mountstats(
        b"device x mounted on /x with fstype nfs4\n\tbytes: " + text.encode() + b"\nper-op "
        b"statistics\n\tREAD: " + text.encode()
    )
    parse_cifs_stats(text.encode())


def test_connections_to_the_same_share_are_summed() -> None:
    text = (
        b"1) \\\\srv\\a\nBytes read: 5  Bytes written: 1\n"
        b"2) \\\\SRV\\a\nBytes read: 7  Bytes written: 0\n"
    )
    assert parse_cifs_stats(text) == {"//srv/a": (12, 1)}


class Dead(HostFs):
    """A host of which some servers do not answer, until `back` is set."""

    __slots__ = ("asked", "back", "dead")

    def __init__(self, root: Path, *dead: str) -> None:
        super().__init__(root)
        self.dead = dead
        self.back = threading.Event()
        self.asked: list[str] = []

    def size(self, path: str) -> tuple[int, int]:
        self.asked.append(path)
        if path in self.dead:
            self.back.wait(60)
        return 1000, 10


def until(true: Callable[[], bool]) -> None:
    """Waits until a thread has done its part."""
    event = threading.Event()
    for _ in range(2000):
        if true():
            return
        event.wait(0.005)
    raise AssertionError("it did not happen within 10 s")


def test_a_dead_server_costs_its_own_size_alone(tmp_path: Path) -> None:
    text = table(("/a", "nfs4"), ("/dead", "nfs4"), ("/z", "nfs4"))
    plant(tmp_path, f"--- /proc/self/mountinfo\n{text}")
    host = Dead(tmp_path, "/dead")
    collector = MountCollector(Sources(hostfs=host))
    before = threading.active_count()
    try:
        now = 0.0
        while now < 600.0:
            sample = Sample(now, {})
            collector.collect(now, sample)
            if now == 0.0:
                until(lambda: "/dead" in host.asked)
            now += 1.0
        until(lambda: "/z" in host.asked)
        collector.wait(10.0)
        sample = Sample(now, {})
        collector.collect(now, sample)
        assert sample.rows["mount", "/a"]["size_bytes"] == 1000.0
        assert sample.rows["mount", "/z"]["used_bytes"] == 10.0
        assert "size_bytes" not in sample.rows["mount", "/dead"]
        assert sample.texts["mount", "/dead"]["fstype"] == "nfs4"
        assert collector.unavailable()["mount /dead size_bytes"] == BLOCKED
        assert host.asked.count("/dead") == 1
        assert threading.active_count() <= before + 2
    finally:
        host.back.set()
    until(lambda: "/dead" in collector._sizes.answers)
    collector.collect(now + 1, sample)
    assert sample.rows["mount", "/dead"]["size_bytes"] == 1000.0
    assert collector.unavailable() == {"mount read_bytes_per_second": "/proc/self/mountstats: "
                                       "No such file or directory"}  # fmt: skip


def test_blocked_threads_are_bounded() -> None:
    back = threading.Event()

    def hang(number: int) -> int:
        back.wait(60)
        return number

    asked = Background(hang, limit=3)
    before = threading.active_count()
    try:
        asked.ask(range(20), 0.0)
        for now in range(1, 200):
            until(lambda: asked._thread is None or asked._running is not None)
            asked.tend(float(now))
        assert threading.active_count() - before == 3
        assert len(asked.reasons) == 3
    finally:
        back.set()
    until(lambda: not asked._blocked)
    asked.tend(300.0)
    asked.wait(10.0)
    until(lambda: len(asked.answers) == 20)


def test_an_error_is_a_reason(tmp_path: Path) -> None:
    asked: Background[str, tuple[int, int]] = Background(HostFs().size)
    asked.ask((str(tmp_path / "absent"), str(tmp_path)), 0.0)
    asked.wait(10.0)
    assert list(asked.answers) == [str(tmp_path)]
    assert asked.reasons == {str(tmp_path / "absent"): "No such file or directory"}
    asked.forget(())
    assert not asked.answers
    assert not asked.reasons


@pytest.mark.parametrize("path", ["/"])
def test_a_size_is_that_of_df(path: str) -> None:
    size, used = HostFs().size(path)
    assert 0 < used < size
