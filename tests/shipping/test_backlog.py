"""Far behind: fresh windows first, the rest at a limited rate, and only so much of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.config.settings import InfluxSettings
from agent.keeper import Keeper, Retention
from agent.shipping.delivery import Accepted, Rejected, Unauthorised
from agent.shipping.influx import Influx
from agent.shipping.position import Position, read_position
from agent.shipping.quarantine import Quarantine
from agent.shipping.shipper import Backlog, Shipper, Waits
from telemetry.clock import ManualClock
from telemetry.event import Event
from telemetry.store import Store
from telemetry.window import Key, Row, Window
from tests.servers.influxdb import InfluxDB
from tests.shipping.points import arrived, stored
from tests.shipping.staged_server import Answer, StagedServer, staged_server

START = 1_700_006_400
IDLE = 30.0


def windows(count: int, first: int = 0) -> list[Window]:
    rows: dict[Key, Row] = {("gpu", "GPU-0"): Row({"covered_seconds": 10.0, "power_watts": 100.0})}
    return [Window("n1", 10, START + i * 10, 10, dict(rows)) for i in range(first, first + count)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "agent.db") as store:
        yield store


@pytest.fixture
def server() -> Iterator[StagedServer]:
    with staged_server() as server:
        yield server


def shipper(
    store: Store, url: str, clock: ManualClock, backlog: Backlog | None = None, lines: int = 50
) -> Shipper:
    return Shipper(
        store.path,
        Influx(InfluxSettings(url=url, timeout_seconds=1.0)),
        Quarantine(store.path.parent / "quarantine", 1_000_000),
        clock,
        batch_lines=lines,
        waits=Waits(2.0, 120.0),
        backlog=backlog or Backlog(),
        jitter=lambda: 1.0,
    )


def starts(request: list[bytes]) -> list[int]:
    return [(int(line.rpartition(b" ")[2]) // 10**9 - START) // 10 for line in request]


def test_fresh_windows_overtake_a_backlog_and_nothing_is_left_out(
    store: Store, server: StagedServer
) -> None:
    clock = ManualClock(START + 10_000.0)
    store.append(windows(1000))
    sender = shipper(store, server.url, clock, Backlog(lines_per_second=100.0))
    assert sender.step() == 0.02
    assert starts(server.requests[0]) == list(range(992, 1000)), "the newest first"
    waits = [sender.step() for _ in range(3)]
    assert waits == [0.5, 0.5, 0.5], "50 lines at 100 a second"
    assert starts(server.requests[3]) == list(range(100, 150))
    store.append(windows(2, first=1000))
    assert sender.step() == 0.02
    assert starts(server.requests[4]) == [1000, 1001], "what is new does not wait"
    assert sender.backlog_windows > 0
    while sender.step() != IDLE:
        pass
    sent = [i for request in server.requests for i in starts(request)]
    assert sorted(sent) == list(range(1002)), "each once"
    assert sender.position == Position(1002, 0, 0, 0, 0, store.identity())
    assert sender.backlog_windows == 0


def test_a_place_in_a_backlog_outlives_the_process(store: Store, server: StagedServer) -> None:
    clock = ManualClock(START + 10_000.0)
    keeper = Keeper(store, "n1", memory_windows=10)
    store.append(windows(600))
    first = shipper(store, server.url, clock)
    for _ in range(4):
        first.step()
    keeper.move(first.position)
    assert read_position(store) == first.position
    store.append(windows(400, first=600))  # nobody ships meanwhile
    second = shipper(store, server.url, clock)
    while second.step() != IDLE:
        pass
    sent = [i for request in server.requests for i in starts(request)]
    assert set(sent) == set(range(1000))
    assert len(sent) <= 1008, "at most those that were ahead are sent again"


@pytest.mark.parametrize(
    "backlog", [Backlog(hours=1.0), Backlog(bytes=27_000)], ids=["hours", "bytes"]
)
def test_a_backlog_is_bounded_and_what_is_left_out_is_told(
    store: Store, server: StagedServer, backlog: Backlog
) -> None:
    store.append(windows(1000))
    clock = ManualClock(START + 10_000.0)
    sender = shipper(store, server.url, clock, backlog)
    sender._window_bytes = 75.0  # as after some windows
    while sender.step() != IDLE:
        pass
    sent = {i for request in server.requests for i in starts(request)}
    assert sent == set(range(640, 1000))
    assert sender.dropped_windows_total == 640
    (notice,) = sender.notices()
    assert notice.kind == "backlog_dropped"
    assert notice.text.startswith("640 windows")
    assert store.windows_between(0, 1000) == 1000, "the store keeps them"


def test_a_day_without_a_server_then_every_window_is_there(
    store: Store, server: StagedServer
) -> None:
    """24 hours of a clock that the test steps; the daemon's part is a window every 10 s."""
    clock = ManualClock(START)
    keeper = Keeper(store, "n1", memory_windows=10)
    down = shipper(store, "http://127.0.0.1:9", clock)
    wait, made, tries, last = 0.0, 0, 0, 0.0
    while made < 8640:
        clock.advance(10.0)
        keeper.append(clock.wall(), windows(1, first=made), down.notices())
        made += 1
        if clock.monotonic() - last >= wait:
            wait, last, tries = down.step(), clock.monotonic(), tries + 1
            assert wait <= 120.0
        keeper.move(down.position)
    assert 700 <= tries <= 750, "back-off: once in two minutes"
    assert keeper.waiting == 0
    assert [e.kind for _, e in store.events()] == ["shipping_stopped"]

    up = shipper(store, server.url, clock, Backlog(lines_per_second=2000.0), lines=2000)
    seconds = 0.0
    while (wait := up.step()) != IDLE:
        seconds += wait
    sent = [i for r in server.requests for i in starts([x for x in r if x.startswith(b"gpu")])]
    assert sorted(sent) == list(range(8640))
    assert seconds < 60


def test_windows_that_went_by_retention_before_they_were_shipped_are_told(store: Store) -> None:
    keeper = Keeper(store, "n1", memory_windows=300)
    keeper.append(START, windows(300))
    keeper.move(read_position(store))
    keeper.move(replace(read_position(store), windows=30))
    keeper.prune(START + 3600 + 500.0, 1000.0, Retention(1.0, 400.0))
    keeper.append(START + 4000.0)
    (event,) = (e for _, e in store.events() if e.kind == "backlog_dropped")
    assert event.text.startswith("20 windows"), "50 went, 30 of them had arrived"


# Servers that keep the good lines, and say how many they dropped


def test_a_whole_measurement_of_another_type_costs_one_request(
    influxdb: InfluxDB, database: str, store: Store
) -> None:
    influx = Influx(InfluxSettings(url=influxdb.url, api="v1", bucket=database))
    assert influx.send(database, [b'gpu,host=x power_watts="n" %d' % (START * 10**9)]) == Accepted()
    lines = [
        b"%s,host=n1 power_watts=1.0 %d" % (name, (START + i) * 10**9)
        for i in range(500)
        for name in (b"gpu", b"other")
    ]
    answer = influx.send(database, lines)
    assert isinstance(answer, Rejected)
    assert answer.lines == tuple(line for line in lines if line.startswith(b"gpu"))
    assert influxdb.count("other", "power_watts", database) == 500
    influx.close()


def test_lines_beyond_the_retention_are_known_by_their_age(
    influxdb: InfluxDB, database: str
) -> None:
    influxdb.query(f'CREATE RETENTION POLICY "short" ON "{database}" DURATION 1h REPLICATION 1')
    influx = Influx(InfluxSettings(url=influxdb.url, api="v1"))
    now = 4_000_000_000  # after today: beyond no retention
    lines = [b"gpu,host=n1 a=1.0 %d" % ((now - i * 10**9) * 10**9) for i in (0, 3, 0, 3)]
    answer = influx.send(f"{database}/short", lines)
    assert isinstance(answer, Rejected)
    assert answer.lines is not None
    assert set(answer.lines) == {lines[1], lines[3]}
    influx.close()


# The write path of InfluxDB 1.x


def test_the_plain_write_path_ships_the_same(
    influxdb: InfluxDB, database: str, store: Store
) -> None:
    store.append(windows(200), events=[Event(START, "n1", "xid", "Xid 79")])
    settings = InfluxSettings(url=influxdb.url, api="v1", bucket=database)
    sender = shipper(store, influxdb.url, ManualClock(START))
    sender._destination = Influx(settings)
    while sender.step() != IDLE:
        pass
    assert arrived(influxdb, database) == stored(store.path)
    assert influxdb.count("event", "sequence", database) == 1


def test_the_plain_write_path_names_an_absent_database(influxdb: InfluxDB) -> None:
    influx = Influx(InfluxSettings(url=influxdb.url, api="v1"))
    answer = influx.send("nobody-made-it", [b"gpu,host=n1 a=1.0 1"])
    assert isinstance(answer, Unauthorised)
    assert "'nobody-made-it'" in answer.reason


def test_the_plain_write_path_sends_user_and_password(server: StagedServer, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("geheim")
    settings = InfluxSettings(url=server.url, api="v1", username="ana", token_file=str(secret))
    server.answers.append(Answer(401, '{"error": "authorization failed"}'))
    answer = Influx(settings).send("talla", [b"gpu a=1.0 1"])
    assert server.tokens == ["Basic YW5hOmdlaGVpbQ=="]
    assert isinstance(answer, Unauthorised)
    assert "geheim" not in answer.reason
