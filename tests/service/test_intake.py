"""What arrives: from stores and InfluxDB, late, after a new store; and hosts that fall silent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.service.config import InfluxReading
from advisor.service.intake import Intake
from advisor.service.outbox import InfluxOutbox, LocalOutbox, Outbox
from advisor.state import State
from agent.config.settings import InfluxSettings
from agent.shipping.influx import Influx
from agent.shipping.position import CURSORS, read_position
from agent.shipping.quarantine import Quarantine
from agent.shipping.shipper import Shipper, Waits
from telemetry.clock import ManualClock, SystemClock
from telemetry.event import Event, Severity
from telemetry.store import Store
from telemetry.window import Key, Row, Window
from tests.servers.influxdb import InfluxDB, V2Front

NOW = 1_772_323_200.0


def alert(rule: str, raised: bool = True, *, host: str = "gpu01", at: float = NOW) -> Event:
    attributes = {"subject": "gpu GPU-1", "title": f"{rule} of {host}", "owner": "ana"}
    return Event(
        at,
        host,
        "alert",
        f"{rule} of {host} ñ",
        Severity.WARNING,
        "GPU-1",
        rule,
        raised,
        attributes,
    )


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    with State(tmp_path / "advisor.db") as state:
        yield state


def told(state: State) -> list[tuple[str, str, bool]]:
    return [
        (r.event.host, r.event.rule or "", bool(r.event.raised)) for r in state.alerts_after({})
    ]


def test_rows_are_taken_once_and_in_order(tmp_path: Path, state: State) -> None:
    intake = Intake(
        state,
        [LocalOutbox(tmp_path / "a.db", ManualClock(NOW))],
        ManualClock(NOW),
        silent_seconds=600,
    )
    with Store(tmp_path / "a.db") as store:
        store.append(events=[alert("a"), Event(NOW, "gpu01", "xid", "79"), alert("b")])
        assert intake.step() == 2
        assert intake.step() == 0
        store.append(events=[alert("a", raised=False)])
        assert intake.step() == 1
    assert intake.step() == 0  # the agent has stopped: its store is read all the same
    assert told(state) == [("gpu01", "a", True), ("gpu01", "b", True), ("gpu01", "a", False)]
    assert [r.event.rule for r in state.open_alerts()] == ["b"]


def test_a_store_that_was_made_anew_is_read_from_its_beginning(
    tmp_path: Path, state: State
) -> None:
    intake = Intake(
        state,
        [LocalOutbox(tmp_path / "a.db", ManualClock(NOW))],
        ManualClock(NOW),
        silent_seconds=600,
    )
    with Store(tmp_path / "a.db") as store:
        store.append(events=[alert("a"), alert("b")])
        intake.step()
    for file in tmp_path.glob("a.db*"):
        file.unlink()
    with Store(tmp_path / "a.db") as store:
        store.append(events=[alert("c", at=NOW + 60)])
        assert intake.step() == 1
        assert intake.step() == 0
    assert [rule for _, rule, _ in told(state)] == ["a", "b", "c"]


def window(start: int, host: str = "gpu01") -> Window:
    rows: dict[Key, Row] = {
        ("host",): Row({"covered_seconds": 10.0}),
        ("agent",): Row({"covered_seconds": 10.0}),
    }
    return Window(host, 10, start, 10, rows)


def test_a_host_that_falls_silent_is_told_once_and_when_it_is_back(
    tmp_path: Path, state: State
) -> None:
    clock = ManualClock(NOW)
    intake = Intake(
        state, [LocalOutbox(tmp_path / "a.db", ManualClock(NOW))], clock, silent_seconds=600
    )
    with Store(tmp_path / "a.db") as store:
        store.append([window(int(NOW) - 20), window(int(NOW) - 3_000_000, "old-recording")])
        for _ in range(30):
            clock.advance(60)
            intake.look_for_silence()
        store.append([window(int(clock.wall()) - 10)])
        intake.look_for_silence()
    assert told(state) == [("gpu01", "host_silent", True), ("gpu01", "host_silent", False)]
    (first, _) = state.alerts_after({})
    assert first.event.text.startswith("Nothing has arrived from gpu01 since 2026-02-28 23:59 UTC")
    assert first.event.time == NOW + 600


def test_a_source_that_cannot_be_read_is_told_and_makes_nobody_silent(
    tmp_path: Path, state: State
) -> None:
    class Broken:
        name = "influx:x"

        def take(self, marks: object) -> object:
            raise OSError("no route to host")

        last_seen = take

    clock = ManualClock(NOW)
    broken: Outbox = Broken()  # type: ignore[assignment]
    with Store(tmp_path / "a.db") as store:
        store.append(events=[alert("a")])
        intake = Intake(
            state,
            [broken, LocalOutbox(tmp_path / "a.db", ManualClock(NOW))],
            clock,
            silent_seconds=600,
        )
        for _ in range(15):
            clock.advance(60)
            intake.step()
            intake.look_for_silence()
    assert told(state) == [("gpu01", "a", True), ("advisor", "history_unreadable", True)]


# A fleet, through the real shipper and the real InfluxDB


def shipped(path: Path, front: V2Front, database: str, folder: Path) -> None:
    """Ships all that a store holds, as its agent does."""
    token = folder / "token"
    token.write_text(front.token)
    settings = InfluxSettings(url=front.url, org=front.org, bucket=database, token_file=str(token))
    with Store(path) as store:
        shipper = Shipper(
            path,
            Influx(settings),
            Quarantine(folder / "q", 10_000),
            SystemClock(),
            position=read_position(store),
            batch_lines=500,
            waits=Waits(),
        )
        while shipper.step() < 1.0:
            pass
        assert shipper.trouble is None
        assert shipper.position is not None
        for part, name in CURSORS.items():
            store.move_cursor(name, getattr(shipper.position, part))
        shipper.stop(1.0)


def test_alerts_of_a_fleet_arrive_by_influxdb_those_that_are_late_too(
    tmp_path: Path, state: State, influxdb: InfluxDB, influxdb_v2: V2Front, database: str
) -> None:
    now = time.time()
    reading = InfluxReading(url=influxdb.url, database=database)
    intake = Intake(state, [InfluxOutbox(reading)], SystemClock(), silent_seconds=600)
    assert intake.step() == 0
    hour = now - 3600
    for host in ("gpu01", "gpu02"):
        (tmp_path / host).mkdir()
        with Store(tmp_path / host / "agent.db") as store:
            events = [
                alert("gpu_stuck", host=host, at=hour),
                Event(hour, host, "xid", "XID 79"),
                alert("gpu_lost", host=host, at=hour),  # the same instant: two points all the same
                alert("gpu_stuck", raised=False, host=host, at=hour + 60),
            ]
            store.append([window(int(now) // 10 * 10 - 20, host)], events=events)
    shipped(tmp_path / "gpu01" / "agent.db", influxdb_v2, database, tmp_path)
    assert intake.step() == 3
    # The rows themselves, as dashboards read them.
    (row, *_) = influxdb.query(
        'SELECT "text", "raised", "severity" FROM "event" WHERE "rule" = \'gpu_lost\'', database
    )[0].records()
    assert (row["text"], row["raised"], row["severity"]) == ("gpu_lost of gpu01 ñ", 1.0, "warning")
    with Store(tmp_path / "gpu01" / "agent.db") as store:
        store.append(events=[alert("gpu_lost", raised=False, at=now)])
    shipped(tmp_path / "gpu01" / "agent.db", influxdb_v2, database, tmp_path)
    assert intake.step() == 1
    # gpu02 was without a network until now: its rows are older than what was read already.
    shipped(tmp_path / "gpu02" / "agent.db", influxdb_v2, database, tmp_path)
    assert intake.step() == 3
    assert intake.step() == 0
    of = {
        host: [(rule, raised) for h, rule, raised in told(state) if h == host]
        for host in ("gpu01", "gpu02")
    }
    began = [("gpu_stuck", True), ("gpu_lost", True), ("gpu_stuck", False)]
    assert of == {"gpu01": [*began, ("gpu_lost", False)], "gpu02": began}
    event = state.alerts_after({})[0].event
    assert event.attributes["owner"] == "ana"
    assert abs(event.time - hour) < 1e-3
    intake.look_for_silence()
    assert not [rule for _, rule, _ in told(state) if rule == "host_silent"]


def test_a_fleet_s_host_whose_store_was_made_anew_is_still_heard(
    tmp_path: Path, state: State, influxdb: InfluxDB, influxdb_v2: V2Front, database: str
) -> None:
    now = time.time()
    reading = InfluxReading(url=influxdb.url, database=database)
    intake = Intake(state, [InfluxOutbox(reading)], SystemClock(), silent_seconds=600)
    path = tmp_path / "agent.db"
    with Store(path) as store:
        store.append(events=[alert("a", at=now - 90), alert("b", at=now - 80)])
    shipped(path, influxdb_v2, database, tmp_path)
    assert intake.step() == 2
    for file in tmp_path.glob("agent.db*"):
        file.unlink()
    with Store(path) as store:
        store.append(events=[alert("c", at=now - 10)])
    shipped(path, influxdb_v2, database, tmp_path)
    assert intake.step() == 1
    assert intake.step() == 0
    assert [rule for _, rule, _ in told(state)] == ["a", "b", "c"]
