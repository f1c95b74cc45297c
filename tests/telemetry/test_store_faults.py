"""Stores that were damaged, killed, removed, grown old: what is lost, and what is told."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from telemetry.event import Event
from telemetry.store import Store, StoreDamaged, StoreError, StoreReader, StoreUnwritable
from telemetry.window import Row, Window

START = 1_700_006_400  # midnight UTC and a multiple of 300
NOW = 1_700_100_000.0
GOLDEN = Path(__file__).parent.parent / "golden" / "store"


def windows(count: int, tier: int = 300, first: int = 0) -> list[Window]:
    return [
        Window(
            "node",
            tier,
            START + i * tier,
            tier,
            {
                ("gpu", f"GPU-{g}"): Row(
                    {"covered_seconds": float(tier), "power_watts": 100.0 + i + g},
                    {"error": f"window {i}"},
                )
                for g in range(4)
            }
            | {("host",): Row({"covered_seconds": float(tier)})},
        )
        for i in range(first, first + count)
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    with Store(path) as store:
        for i in range(0, 600, 50):
            store.append(windows(50, first=i))
        store.append(
            events=[Event(NOW, "node", "xid", "Xid 79")],
            inventories=[(NOW, "node", {"host": "node"})],
            memories={"rules": "kept"},
        )
        store.move_cursors({"ship": 590, "ship_events": 1})
    return path


def spoil_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(60))


def zero_first_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(4096))


def spoil_pages(path: Path) -> None:
    chance = random.Random(7)
    pages = path.stat().st_size // 4096
    with path.open("r+b") as file:
        for page in chance.sample(range(30, pages), 5):
            file.seek(page * 4096)
            file.write(chance.randbytes(4096))


def cut_short(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size * 2 // 3)


@pytest.mark.parametrize("spoil", [spoil_header, zero_first_page, cut_short])
def test_a_damaged_store_is_refused_to_readers_and_importers(
    path: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(path)
    with pytest.raises(StoreError, match=str(path)):
        Store(path)


@pytest.mark.parametrize("spoil", [spoil_header, zero_first_page, spoil_pages, cut_short])
def test_a_damaged_store_is_set_aside_and_a_new_one_holds_what_could_be_read(
    path: Path, spoil: Callable[[Path], None]
) -> None:
    with StoreReader(path) as reader:
        before = dict(reader.windows_after(0, 1000))
    spoil(path)
    # What looks whole at the start is found out by a look at every page after a crash.
    path.with_name("s.db-wal").write_bytes(b"torn")
    damaged = path.read_bytes()
    with Store(path, mend_at=NOW) as store:
        found = store.recovered
        assert found is not None
        assert found.aside == path.with_name("s.db.damaged-20231116T020000Z")
        assert found.aside.read_bytes() == damaged
        after = dict(store.windows_after(0, 1000))
        assert len(after) == found.windows
        assert all(after[position] == before[position] for position in after), "whole, or not there"
        store.append(windows(1, first=600))
        assert store.last_window_id() >= len(after) + 1
        if spoil is spoil_pages:
            assert 400 < found.windows < 600
            assert found.windows + found.lost_windows == 600
            assert store.cursor("ship") == 590
            assert store.memory("rules") == "kept"
            assert store.last_window_id() == 601, "no position is given twice"
    assert str(found.aside) in found.text


def test_two_of_one_second_are_set_aside_under_two_names(path: Path) -> None:
    for _ in range(2):
        zero_first_page(path)
        Store(path, mend_at=NOW).close()
    assert len(list(path.parent.glob("s.db.damaged-*"))) == 2


def test_what_is_no_store_is_never_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(b"somebody's notes, long enough to be looked at" * 100)
    with pytest.raises(StoreError, match="no Talla store"):
        Store(path, mend_at=NOW)
    assert path.exists()
    assert not isinstance(StoreError("x"), StoreDamaged)


WRITE = """
import sys, itertools
from tests.telemetry.test_store_faults import windows
from telemetry.store import Store
with Store(sys.argv[1], mend_at=1.7e9) as store:
    if store.recovered: print("recovered", flush=True)
    first = store.last_window_id()
    for i in itertools.count(first, 3):
        store.append(windows(3, first=i))
        print(i + 3, flush=True)
"""


def killed_while_writing(path: Path, times: int, chance: random.Random) -> None:
    """Each time, all that was told as committed must be there, in whole transactions."""
    for _ in range(times):
        with subprocess.Popen(
            [sys.executable, "-c", WRITE, str(path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            told = [writer.stdout.readline().strip() for _ in range(chance.randrange(1, 60))]
            writer.send_signal(signal.SIGKILL)
            told += writer.stdout.read().split("\n")
        complete = [int(word) for word in told if word.isdigit()]
        assert "recovered" not in told
        with Store(path) as store:
            kept = store.windows_after(0, 100_000)
        assert len(kept) % 3 == 0
        assert complete
        assert len(kept) >= max(complete)
        expected = windows(len(kept))
        assert [w.rows.keys() for _, w in kept] == [w.rows.keys() for w in expected]
        assert [w.start for _, w in kept] == [w.start for w in expected]


def test_a_writer_that_is_killed_loses_no_committed_window(tmp_path: Path) -> None:
    killed_while_writing(tmp_path / "s.db", 3, random.Random(1))


@pytest.mark.long
def test_a_writer_that_is_killed_a_hundred_times_loses_no_committed_window(tmp_path: Path) -> None:
    killed_while_writing(tmp_path / "s.db", 100, random.Random(2))


def test_a_removed_and_a_replaced_file_are_noticed(path: Path, tmp_path: Path) -> None:
    with Store(path) as store, StoreReader(path) as reader:
        assert store.in_place()
        assert reader.in_place()
        first = store.identity()
        path.rename(tmp_path / "moved")
        assert not store.in_place()
        assert not reader.in_place()
        Path(f"{path}-wal").unlink(missing_ok=True)
    with Store(path) as store:
        assert store.identity() != first


def test_a_reader_that_was_opened_at_rest_notices_a_writer(path: Path) -> None:
    with StoreReader(path) as reader:
        assert reader.in_place()
        with Store(path) as store:
            store.append(windows(1, first=700))
            assert not reader.in_place()


def test_a_store_of_version_1_is_opened_by_every_later_one(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(GOLDEN / "v1.db", path)
    before = path.read_bytes()
    with StoreReader(path) as old:
        read = old.windows_after(0, 10)
        assert old.owner_days("node-1", since=0, until=1e12) == []
        assert old.identity() == ""
    assert path.read_bytes() == before, "a reader changes nothing"
    with Store(path) as store:
        assert store.windows_after(0, 10) == read
        assert [(p, w.tier, w.start) for p, w in read] == [
            (1, 10, 1_700_000_100),
            (2, 300, 1_700_000_100),
            (3, 300, 1_700_000_400),
        ]
        gpu = read[1][1].rows["gpu", "GPU-0"]
        assert gpu.values == {
            "covered_seconds": 300.0,
            "utilization_ratio": 0.5,
            "power_watts": 251.5,
            "memory_used_bytes": 2.0**34,
        }
        assert gpu.texts == {"gpu_model": "NVIDIA H100 80GB HBM3"}
        assert [event.kind for _, event in store.events()] == ["xid", "alert"]
        inventory = store.inventory("node-1")
        assert inventory is not None
        assert inventory["gpus"][0]["uuid"] == "GPU-0"
        assert (store.cursor("ship"), store.cursor("ship_events")) == (2, 1)
        assert store.memory("alerts") == "{}"
        assert store.identity()
        store.append(windows(1))
        assert store.last_window_id() == 4


def test_old_process_rows_are_merged_by_owner_and_day(tmp_path: Path) -> None:
    def with_jobs(i: int) -> Window:
        rows = {
            ("gpu", "GPU-0"): Row({"covered_seconds": 300.0}),
            ("gpu_process", "GPU-0", "0"): Row(
                {"covered_seconds": 300.0, "memory_bytes": float(2**30)},
                {"owner": "ana", "workload": "training", "pid": str(i), "command": f"x {i}"},
            ),
        }
        if i % 2:
            rows["gpu_process", "GPU-0", "1"] = Row(
                {"covered_seconds": 150.0, "memory_bytes": float(2**31)}, {"owner": "bo"}
            )
        return Window("node", 300, START + i * 300, 300, rows)

    with Store(tmp_path / "s.db") as store:
        store.append([with_jobs(i) for i in range(2 * 288)])
        steps = 0
        while store.merge_processes(START + 300 * 432, limit=50):  # a day and a half
            steps += 1
        assert steps == 9
        days = store.owner_days("node", since=0, until=1e12)
        assert [(d.day - START, d.gpu_uuid, d.texts, d.seconds, d.memory_bytes) for d in days] == [
            (0, "GPU-0", {"owner": "ana", "workload": "training"}, 86_400.0, 2.0**30),
            (0, "GPU-0", {"owner": "bo"}, 21_600.0, 2.0**31),
            (86_400, "GPU-0", {"owner": "ana", "workload": "training"}, 43_200.0, 2.0**30),
            (86_400, "GPU-0", {"owner": "bo"}, 10_800.0, 2.0**31),
        ]
        frames = store.frames(
            "node", "gpu_process", 300, since=0, until=1e12, fields=["memory_bytes"]
        )
        assert min(frame.start[0] for frame in frames) == START + 300 * 432
        (gpu,) = store.frames("node", "gpu", 300, since=0, until=1e12, fields=["covered_seconds"])
        assert len(gpu) == 576, "the GPU's own rows stay"


def test_used_bytes_fall_when_windows_go(path: Path) -> None:
    with Store(path) as store:
        before = store.used_bytes()
        while store.prune(300, START + 300 * 500):
            pass
        assert 0 < store.used_bytes() < before / 2


def test_a_full_disk_is_no_damage(path: Path) -> None:
    with Store(path, mend_at=NOW) as store:
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="full") as told:
            store.append(windows(200, first=600))
        assert not isinstance(told.value, StoreDamaged)
    with sqlite3.connect(path) as raw:
        assert raw.execute("PRAGMA quick_check").fetchone() == ("ok",)
    raw.close()


@pytest.mark.parametrize(
    ("number", "later"), [(errno.ENOSPC, True), (errno.EROFS, True), (errno.EACCES, False)]
)
def test_a_disk_that_may_be_written_later_is_told_from_a_folder_that_never_will(
    path: Path, monkeypatch: pytest.MonkeyPatch, number: int, later: bool
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("telemetry.store_lock.os.open", refuse)
    with pytest.raises(StoreError, match=os.strerror(number)) as told:
        Store(path)
    assert isinstance(told.value, StoreUnwritable) is later
