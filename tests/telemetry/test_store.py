"""The store keeps what it was given, for whoever may read it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from telemetry.event import Event, Severity
from telemetry.metrics import FAMILIES, family
from telemetry.store import SCHEMA_VERSION, Store, StoreError, StoreReader
from telemetry.window import Key, Row, Window
from tests.require import need

START = 1_700_000_100


def window(start: int = START, tier: int = 300, host: str = "node", **values: float) -> Window:
    return Window(host, tier, start, tier, {("gpu", "GPU-0"): Row(dict(values), {"error": "x"})})


@st.composite
def any_window(draw: st.DrawFn) -> Window:
    rows: dict[Key, Row] = {}
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    for kind in draw(st.lists(st.sampled_from(FAMILIES), unique_by=lambda f: f.measurement)):
        fields = draw(st.sets(st.sampled_from(kind.fields())))
        values = {f: draw(st.floats(-1e15, 1e15)) for f in fields}
        texts = {t: draw(text) for t in kind.texts if draw(st.booleans())}
        rows[kind.measurement, *(draw(text) for _ in kind.tags)] = Row(values, texts)
    return Window(draw(text.filter(bool)), 300, draw(st.integers(0, 2**33)), 300, rows)


def assert_same(kept: Window, given: Window) -> None:
    """Equal, but for the resolution of each field's unit."""
    assert (kept.host, kept.tier, kept.start, kept.seconds) == (
        given.host,
        given.tier,
        given.start,
        given.seconds,
    )
    assert kept.rows.keys() == given.rows.keys()
    for key, row in given.rows.items():
        assert kept.rows[key].texts == row.texts
        assert kept.rows[key].values.keys() == row.values.keys()
        scales = family(key[0]).scales()
        for name, value in row.values.items():
            step = pytest.approx(value, rel=1e-12, abs=0.5001 / scales[name])
            assert kept.rows[key].values[name] == step


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None
)
@given(st.lists(any_window(), max_size=4, unique_by=lambda w: (w.host, w.start)))
def test_what_is_appended_comes_back(tmp_path: Path, appended: list[Window]) -> None:
    path = tmp_path / "store.db"
    for leftover in tmp_path.iterdir():
        leftover.unlink()
    with Store(path) as store:
        store.append(appended)
    with StoreReader(path) as reader:
        kept = [w for _, w in reader.windows_after(0, 100)]
    for kept_window, given_window in zip(kept, appended, strict=True):
        assert_same(kept_window, given_window)
    again = path.with_name("again.db")
    with Store(again) as store:
        store.append(kept)
        assert [w for _, w in store.windows_after(0, 100)] == kept, "what was kept stays as it is"


def test_frames_are_columns_in_order_of_time(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.append([window(START + 300, power_watts=2.0), window(START, utilization_ratio=0.5)])
        (frame,) = store.frames(
            "node",
            "gpu",
            300,
            since=START,
            until=START + 600,
            fields=["power_watts", "utilization_ratio"],
            texts=True,
        )
    assert frame.key == ("gpu", "GPU-0")
    assert frame.start == [START, START + 300]
    assert frame.columns == {"power_watts": [None, 2.0], "utilization_ratio": [0.5, None]}
    assert frame.texts == [{"error": "x"}] * 2


def test_an_older_window_gives_way(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.append([window(power_watts=1.0)])
        store.append([window(power_watts=2.0)])
        ((position, kept),) = store.windows_after(0, 10)
        assert kept.rows["gpu", "GPU-0"].values == {"power_watts": 2.0}
        assert position == store.last_window_id() == 2, "it is committed, and so shipped, anew"


def test_events_count_for_each_host(tmp_path: Path) -> None:
    event = Event(5.0, "a", "xid", "XID 79", Severity.CRITICAL, "GPU-0", attributes={"xid": "79"})
    with Store(tmp_path / "s.db") as store:
        store.append(events=[event, Event(6.0, "b", "agent_start", "started"), event])
        assert [(i, e.host, e.sequence) for i, e in store.events()] == [
            (1, "a", 1),
            (2, "b", 1),
            (3, "a", 2),
        ]
        (_, first), *_ = store.events("a")
        assert first.attributes == {"xid": "79"}
        assert first.raised is None


def test_prune_takes_the_oldest_of_a_tier(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.append([window(START + 10 * i, tier=10) for i in range(10)] + [window()])
        assert len(store.prune(10, START + 55)) == 5
        assert store.span("node", 10) == (START + 50, START + 100)
        assert store.span("node", 300) == (START, START + 300)


def test_a_failed_append_keeps_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    bad = window(host="new", power_watts=1.0)
    bad.rows["gpu", "GPU-1"] = Row({"power_watts": 666.0})
    with Store(tmp_path / "s.db") as store:
        store._connection.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON m_gpu WHEN NEW.power_watts = 6660"
            " BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )
        with pytest.raises(StoreError, match="refused"):
            store.append([bad])
        assert store.hosts() == []
        store.append([window(host="new", power_watts=1.0)])
        assert store.hosts() == ["new"]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db"), pytest.raises(StoreError, match="another process writes"):
        Store(tmp_path / "s.db")
    Store(tmp_path / "s.db").close()


def test_cursors_survive(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        assert store.cursor("influx") == 0
        store.move_cursor("influx", 7)
        store.move_cursor("influx", 9)
    with StoreReader(tmp_path / "s.db") as reader:
        assert reader.cursor("influx") == 9


def test_a_metric_declared_later_gets_its_column(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store(path) as store:
        store.append([window(power_watts=1.0)])
        store._connection.execute("ALTER TABLE m_gpu DROP COLUMN temperature_celsius")
    with StoreReader(path) as old:  # a store that an older version wrote
        (frame,) = old.frames(
            "node", "gpu", 300, since=0, until=2e9, fields=["temperature_celsius", "power_watts"]
        )
        assert frame.columns == {"temperature_celsius": [None], "power_watts": [1.0]}
    with Store(path) as store:
        store.append([window(START + 300, temperature_celsius=40.0)])
        assert len(store.windows_after(0, 10)) == 2


@pytest.mark.parametrize(
    "content", [b"", b"no database, but long enough to look", b"SQLite format 3"]
)
def test_a_file_that_is_no_store_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=str(path)):
        StoreReader(path)
    if content:
        with pytest.raises(StoreError, match=str(path)):
            Store(path)
        assert path.read_bytes() == content


def test_another_database_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    before = path.read_bytes()
    for opened in (Store, StoreReader):
        with pytest.raises(StoreError, match="no Talla store"):
            opened(path)
    assert path.read_bytes() == before


def test_a_newer_store_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Store(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    raw.close()
    before = path.read_bytes()
    for opened in (Store, StoreReader):
        with pytest.raises(StoreError, match="newer Talla"):
            opened(path)
    assert path.read_bytes() == before


def test_no_store_and_no_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store here"):
        StoreReader(tmp_path / "absent.db")
    with pytest.raises(StoreError, match="no such folder"):
        Store(tmp_path / "absent" / "s.db")


READ = """
import sys
from telemetry.store import StoreReader
with StoreReader(sys.argv[1]) as reader:
    print(len(reader.windows_after(0, 10)))
"""


def read_as_a_member_of_the_group(path: Path) -> str:
    # The interpreter's own folder may be closed to others, so the user changes after start-up.
    code = (
        "import os, sys; sys.path.insert(0, '.'); import telemetry.store;"
        "os.setgroups([]); os.setuid(65534);" + READ
    )
    made = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    return made.stdout.strip() or made.stderr


def test_another_user_reads_while_it_is_written_and_afterwards(tmp_path: Path) -> None:
    need(os.geteuid() == 0, "root", "run the tests as root to read as another user")
    open_folder = Path("/var/tmp") / f"talla-test-{os.getpid()}"
    open_folder.mkdir(mode=0o750)
    try:
        path = open_folder / "s.db"
        with Store(path) as store:
            store.append([window()])
            assert read_as_a_member_of_the_group(path) == "1"
            store.append([window(START + 300)])
            assert read_as_a_member_of_the_group(path) == "2"
        assert not path.with_name("s.db-wal").exists()
        assert read_as_a_member_of_the_group(path) == "2"
    finally:
        shutil.rmtree(open_folder)
