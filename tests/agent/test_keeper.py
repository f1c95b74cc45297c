"""The store on a disk that fails: sampling goes on, it is told, and writing resumes by itself."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.keeper import Keeper, Retention
from agent.shipping.position import Position, read_position
from telemetry.store import Store, StoreReader
from telemetry.window import Key, Row, Window

START = 1_700_006_400


def window(i: int, tier: int = 10) -> Window:
    rows: dict[Key, Row] = {
        ("gpu", f"GPU-{g}"): Row({"covered_seconds": 10.0, "power_watts": 100.0 + i})
        for g in range(8)
    }
    return Window("n1", tier, START + i * tier, tier, rows)


def kinds(path: Path) -> list[str]:
    with StoreReader(path) as store:
        return [event.kind for _, event in store.events()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "talla"
    folder.mkdir()
    return folder / "agent.db"


def remove_file(path: Path) -> None:
    path.unlink()


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def replace_file(path: Path) -> None:
    other = path.with_name("other.db")
    with Store(other) as store:
        store.append([window(1000)])
    other.replace(path)


@pytest.mark.parametrize("vanish", [remove_file, remove_folder, replace_file])
def test_a_store_that_vanishes_is_begun_anew(path: Path, vanish: Callable[[Path], None]) -> None:
    keeper = Keeper(Store(path), "n1", memory_windows=5)
    assert keeper.append(START, [window(0)])
    vanish(path)
    if vanish is remove_folder:
        for i in range(1, 9):
            assert not keeper.append(START + 10.0 * i, [window(i)])
        assert keeper.trouble is not None
        assert "no such folder" in keeper.trouble
        assert keeper.waiting == 5
        path.parent.mkdir()
    assert keeper.append(START + 100.0, [window(9)])
    keeper.close()
    with StoreReader(path) as store:
        kept = [(w.start - START) // 10 for _, w in store.windows_after(0, 100)]
    expected: dict[Callable[[Path], None], list[int]]
    expected = {remove_file: [9], remove_folder: [5, 6, 7, 8, 9], replace_file: [1000, 9]}
    assert kept == expected[vanish]
    told = kinds(path)
    assert "store_replaced" in told
    if vanish is remove_folder:
        assert told == ["store_replaced", "store_stopped", "store_resumed"]


def test_a_store_damaged_while_it_is_written_is_set_aside(path: Path) -> None:
    keeper = Keeper(Store(path), "n1", memory_windows=100)
    for i in range(300):
        keeper.append(START + 10.0 * i, [window(i)])
    size = path.stat().st_size
    with path.open("r+b") as file:  # a disk that returns something else than was written
        file.seek(8 * 4096)
        file.write(b"\xa5" * (size - 16 * 4096))
    keeper._store._connection.execute("PRAGMA shrink_memory")  # type: ignore[union-attr]
    keeper.prune(START + 10_000.0, 1e6, Retention(1.0, 400))  # reads the oldest pages
    for i in range(300, 400):
        assert keeper.append(START + 10.0 * i, [window(i)])
    keeper.close()
    (aside,) = path.parent.glob("agent.db.damaged-*Z")
    assert aside.stat().st_size >= size
    assert "store_damaged" in kinds(path)
    with StoreReader(path) as store:
        kept = [(w.start - START) // 10 for _, w in store.windows_after(0, 1000)]
        assert all(len(w.rows) == 8 for _, w in store.windows_after(0, 1000))
    assert set(kept) >= set(range(300, 400)), "what came after it is all there"


def test_a_store_that_was_found_damaged_at_the_start_is_told(path: Path) -> None:
    with Store(path) as store:
        store.append([window(0)])
    with path.open("r+b") as file:
        file.write(bytes(4096))
    keeper = Keeper(Store(path, mend_at=float(START)), "n1", memory_windows=10)
    keeper.append(START, [window(1)])
    keeper.close()
    assert kinds(path) == ["store_damaged"]


def test_without_a_store_at_the_start_windows_wait_in_memory(path: Path) -> None:
    path.parent.rmdir()
    keeper = Keeper(None, "n1", memory_windows=5, path=path)
    assert keeper.position() == Position()
    for i in range(7):
        assert not keeper.append(START + 10.0 * i, [window(i)])
    assert keeper.memory("rules") is None
    keeper.prune(START, 1e6, Retention(48, 400))
    path.parent.mkdir()
    assert keeper.append(START + 70.0, [window(7)])
    keeper.close()
    with StoreReader(path) as store:
        assert [(w.start - START) // 10 for _, w in store.windows_after(0, 100)] == [3, 4, 5, 6, 7]


def test_a_position_in_a_store_that_is_gone_is_not_kept_in_the_new_one(path: Path) -> None:
    keeper = Keeper(Store(path), "n1", memory_windows=10)
    keeper.append(START, [window(i) for i in range(10)])
    with StoreReader(path) as store:
        reached = Position(9, store=store.identity())
    keeper.move(reached)
    path.unlink()
    keeper.append(START + 100.0, [window(10)])
    keeper.move(reached)
    keeper.close()
    with StoreReader(path) as store:
        assert read_position(store).windows == 0


def test_beyond_its_bytes_the_oldest_short_windows_go_first(path: Path) -> None:
    keeper = Keeper(Store(path), "n1", memory_windows=100)
    for i in range(0, 2000, 100):
        keeper.append(START, [window(n) for n in range(i, i + 100)])
    keeper.append(START, [window(n, 300) for n in range(100)])
    with StoreReader(path) as store:
        full = store._connection.execute("PRAGMA page_count").fetchone()[0] * 4096
    retention = Retention(1e6, 1e6, most_bytes=full // 2)
    for i in range(60):
        keeper.prune(START + 100_000.0, 60.0 * (i + 1), retention)
    keeper.close()
    with Store(path) as store:
        assert store.used_bytes() <= full // 2
        assert store.span("n1", 300) == (START, START + 30_000), "none of the long ones"
        span = store.span("n1", 10)
        assert span is not None
        assert START + 5_000 < span[0] < START + 15_000
