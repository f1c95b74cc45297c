"""Local stores as history, and the periods that commands tell of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import AdvisorError
from advisor.history import LocalHistory
from advisor.inventories import read_file
from advisor.period import parse_duration, parse_instant, period
from telemetry.event import Event
from telemetry.inventory import Cpu, GpuInfo, Inventory, MigInstance, Nic, Pcie
from telemetry.store import Store, StoreError
from telemetry.window import Row, Window

_DAY = 86_400


def _window(host: str, start: int, power: float, uuid: str = "GPU-0") -> Window:
    row = Row({"covered_seconds": 300.0, "power_watts": power}, {"gpu_model": "L4"})
    return Window(host, 300, start, 300, {("gpu", uuid): row})


def _store(path: Path, *windows: Window, **inventories: Inventory) -> Path:
    with Store(path) as store:
        store.append(
            windows,
            events=[Event(w.start, w.host, "agent_start", path.name) for w in windows[:1]],
            inventories=[(0.0, host, i.to_json()) for host, i in inventories.items()],
        )
    return path


def test_several_stores_are_one_history(tmp_path: Path) -> None:
    first = _store(tmp_path / "1.db", _window("a", 0, 1.0), _window("a", 300, 2.0))
    second = _store(
        tmp_path / "2.db", _window("a", 300, 9.0), _window("a", 600, 3.0), _window("b", 0, 5.0)
    )
    with LocalHistory([first, second, first]) as history:
        assert history.hosts() == ["a", "b"]
        assert history.span("a") == (0, 900)
        assert history.span("nobody") is None
        (frame,) = history.frames(
            "a", "gpu", since=0, until=900, fields=("power_watts",), texts=True
        )
        assert frame.start == [0, 300, 600]
        assert frame.columns["power_watts"] == [1.0, 2.0, 3.0], "the store named first is believed"
        assert [t["gpu_model"] for t in frame.texts] == ["L4"] * 3
        assert [e.text for e in history.events("a", since=0, until=900)] == ["1.db", "2.db"]
        assert history.events("a", since=1, until=300) == []


def test_the_newest_inventory_is_that_of_the_newest_windows(tmp_path: Path) -> None:
    old = _store(tmp_path / "old.db", _window("a", 0, 1.0), a=Inventory("a", memory_bytes=1))
    new = _store(tmp_path / "new.db", _window("a", _DAY, 1.0), a=Inventory("a", memory_bytes=2))
    for order in ([old, new], [new, old]):
        with LocalHistory(order) as history:
            assert history.inventory("a") == Inventory("a", memory_bytes=2)
            assert history.inventory("b") is None


def test_every_field_of_an_inventory_comes_back(tmp_path: Path) -> None:
    full = Inventory(
        "a",
        Cpu("EPYC", 2, 64, 128),
        540_000_000_000,
        (
            GpuInfo("GPU-0", 0, "L4", 24_000_000_000, 72.0, "8.9", nvlink_peers=()),
            GpuInfo("GPU-1", pcie=Pcie(4, 16), mig=(MigInstance(1, 0, "1g.10gb"),)),
        ),
        nics=(Nic("ib0", "infiniband", 400_000_000_000, "up"),),
        standby=False,
        pinned_phases=("training",),
    )
    store = _store(tmp_path / "a.db", a=full)
    with LocalHistory([store]) as history:
        assert history.inventory("a") == full


def test_a_newer_agent_s_inventory_is_read(tmp_path: Path) -> None:
    with Store(tmp_path / "a.db") as store:
        document = {**Inventory("a", memory_bytes=1).to_json(), "cooling": "water"}
        store.append(inventories=[(0.0, "a", document)])
    with LocalHistory([tmp_path / "a.db"]) as history:
        assert history.inventory("a") == Inventory("a", memory_bytes=1)


def test_stores_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    good = _store(tmp_path / "good.db", _window("a", 0, 1.0))
    with pytest.raises(StoreError, match=r"absent\.db: there is no store here"):
        LocalHistory([good, tmp_path / "absent.db"])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7d", 604_800), ("12h", 43_200), ("1.5h", 5400), ("90m", 5400), ("2w", 1_209_600)],
)
def test_periods_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "7", "d", "0d", "-1d", "7 days", "1e3d", "7d12h"])
def test_what_is_no_period_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="as in 7d"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1772366400", 1772366400),
        ("2026-03-01T12:00:00Z", 1772366400),
        ("2026-03-01 12:00", 1772366400),
        ("2026-03-01T13:00:00+01:00", 1772366400),
    ],
)
def test_times_as_people_write_them(text: str, instant: float) -> None:
    assert parse_instant(text) == instant


@pytest.mark.parametrize("text", ["", "yesterday", "nan", "inf"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no time"):
        parse_instant(text)


def test_a_period_ends_with_the_newest_window_and_begins_with_the_first(tmp_path: Path) -> None:
    store = _store(tmp_path / "a.db", _window("a", 3 * _DAY, 1.0), _window("a", 5 * _DAY, 1.0))
    with LocalHistory([store]) as history:
        newest = 5 * _DAY + 300
        last_day = period(history, "a", _DAY)
        assert last_day is not None
        assert (last_day.since, last_day.until) == (newest - _DAY, newest)
        all_of_it = period(history, "a", 28 * _DAY)
        assert all_of_it is not None
        assert (all_of_it.since, all_of_it.until) == (3 * _DAY, newest)
        assert all_of_it.hours == pytest.approx(48 + 1 / 12)
        told = period(history, "a", _DAY, until=4.5 * _DAY)
        assert told is not None
        assert (told.since, told.until) == (3.5 * _DAY, 4.5 * _DAY)
        assert period(history, "a", _DAY, until=2 * _DAY) is None
        assert period(history, "b", _DAY) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is no JSON"),
        ("[]", "holds no inventory"),
        ('"a"', "holds no inventory"),
        ('{"host": "a", "memory_bytes": "much"}', "memory_bytes"),
        ('{"host": "a", "gpus": [{"uuid": "u", "memory_bytes": []}]}', "gpus.0.memory_bytes"),
        ('{"memory_bytes": 1}', "host"),
    ],
)
def test_an_inventory_file_that_is_wrong_names_file_and_key(
    text: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "inventory.json"
    path.write_text(text)
    with pytest.raises(AdvisorError, match=says) as raised:
        read_file(path)
    assert str(raised.value).startswith(str(path))
    assert raised.value.exit_code == 1


def test_keys_that_are_not_known_are_named(tmp_path: Path) -> None:
    path = tmp_path / "inventory.json"
    path.write_text('{"host": "a", "rack": 7, "gpus": [{"uuid": "u", "pcie": {"lanes": 16}}]}')
    told = read_file(path)
    assert told.unknown_keys == ("rack", "gpus.0.pcie.lanes")
    assert told.inventories[0].gpus[0].uuid == "u"
