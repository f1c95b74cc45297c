"""From the store to a server: nothing lost, nothing twice, whatever the server says."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agent.config.settings import InfluxSettings
from agent.shipping.delivery import Accepted, Delivery
from agent.shipping.influx import Influx
from agent.shipping.position import Position
from agent.shipping.quarantine import Quarantine
from agent.shipping.shipper import Shipper, Waits
from agent.state_texts import StateTexts
from telemetry.clock import ManualClock
from telemetry.event import Event, Severity
from telemetry.simulation import history, load_scenario
from telemetry.store import Store
from telemetry.window import Window
from tests.servers.influxdb import InfluxDB, V2Front
from tests.servers.victoriametrics import VictoriaMetrics
from tests.shipping.points import arrived, stored
from tests.shipping.staged_server import Answer, StagedServer, staged_server

START = 1_700_000_100  # a multiple of 300


@pytest.fixture(scope="module")
def windows() -> list[Window]:
    """An hour of a server, the last ten minutes in both tiers."""
    return list(history(load_scenario("training"), START, 1 / 24))


@pytest.fixture
def store(tmp_path: Path, windows: list[Window]) -> Iterator[Store]:
    with Store(tmp_path / "agent.db") as store:
        store.append(windows[:-20])
        store.append(windows[-20:])
        yield store


@pytest.fixture
def influx(influxdb_v2: V2Front, database: str, tmp_path: Path) -> InfluxSettings:
    token = tmp_path / "token"
    token.write_text(influxdb_v2.token)
    return InfluxSettings(url=influxdb_v2.url, bucket=database, token_file=str(token))


def shipper(store: Store, settings: InfluxSettings, position: Position | None = None) -> Shipper:
    return Shipper(
        store.path,
        Influx(settings, StateTexts()),
        Quarantine(store.path.parent / "quarantine", 1_000_000),
        ManualClock(),
        position=position or Position(),
        batch_lines=settings.batch_lines,
        waits=Waits(2.0, 100.0),
        jitter=lambda: 1.0,
    )


def reached(sender: Shipper) -> Position:
    assert sender.position is not None
    return sender.position


def ship(sender: Shipper, steps: int = 1000) -> list[float]:
    """Steps until nothing is left; the waits that were asked for on the way."""
    waits: list[float] = []
    for _ in range(steps):
        wait = sender.step()
        if wait == 30.0:
            return waits
        waits.append(wait)
    raise AssertionError("there is still something to ship")


def test_both_tiers_arrive_field_by_field(
    influxdb: InfluxDB, database: str, store: Store, influx: InfluxSettings
) -> None:
    sender = shipper(store, influx)
    ship(sender)
    there = arrived(influxdb, database)
    assert {key[2] for key in there} == {"10s", "5m"}
    assert there == stored(store.path)
    assert reached(sender).windows == store.last_window_id()
    assert sender.backlog_windows == 0
    # Shipped from the beginning once more, nothing changes.
    ship(shipper(store, influx))
    assert arrived(influxdb, database) == there


def test_the_tiers_may_have_a_bucket_each(
    influxdb: InfluxDB, database: str, store: Store, influx: InfluxSettings
) -> None:
    influxdb.query(f'CREATE DATABASE "{database}_5m"')
    settings = InfluxSettings(
        influx.url, bucket=database, bucket_5m=f"{database}_5m", token_file=influx.token_file
    )
    ship(shipper(store, settings))
    assert {key[2] for key in arrived(influxdb, database)} == {"10s"}
    assert {key[2] for key in arrived(influxdb, f"{database}_5m")} == {"5m"}
    assert arrived(influxdb, database, f"{database}_5m") == stored(store.path)
    influxdb.query(f'DROP DATABASE "{database}_5m"')


def test_fields_have_the_types_of_the_design(
    influxdb: InfluxDB, database: str, store: Store, influx: InfluxSettings
) -> None:
    ship(shipper(store, influx))
    for series in influxdb.query("SHOW FIELD KEYS", database):
        for name, kind in series.rows:
            if str(name).endswith("_count"):
                assert kind == "integer", (series.name, name)
            elif kind != "float":
                assert kind == "string", (series.name, name)
    keys = influxdb.query("SHOW TAG KEYS", database)
    assert {str(s.name): [row[0] for row in s.rows] for s in keys} == {
        "disk": ["device", "host", "window"],
        "gpu": ["gpu_model", "gpu_uuid", "host", "window"],
        "gpu_process": ["gpu_uuid", "host", "slot", "window"],
        "host": ["host", "window"],
        "mount": ["host", "mount", "window"],
        "nic": ["device", "host", "window"],
    }
    assert influxdb.query('SELECT count("state") FROM "gpu"', database)


def test_events_and_inventories_are_shipped_too(
    influxdb: InfluxDB, database: str, store: Store, influx: InfluxSettings
) -> None:
    when = float(START)
    twice = Event(when, "n1", "xid", 'GPU "0" says\n79', Severity.CRITICAL, gpu_uuid="GPU-0")
    alert = Event(when, "n1", "alert", "hot", rule="R1", raised=True, attributes={"a": "b"})
    store.append(
        events=[twice, twice, alert], inventories=[(when, "n1", {"host": "n1", "purpose": 'a "b"'})]
    )
    sender = shipper(store, influx)
    ship(sender)
    assert (reached(sender).events, reached(sender).inventories) == (3, 1)
    (events,) = influxdb.query('SELECT * FROM "event" ORDER BY time', database)
    told = [(r["kind"], r["sequence"], r["text"], r["severity"]) for r in events.records()]
    assert told == [
        ("xid", 1, 'GPU "0" says 79', "critical"),
        ("xid", 2, 'GPU "0" says 79', "critical"),
        ("alert", 3, "hot", "info"),
    ]
    last = events.records()[-1]
    assert (last["rule"], last["raised"], last["attributes"]) == ("R1", 1, '{"a": "b"}')
    (inventory,) = influxdb.query('SELECT * FROM "inventory"', database)
    assert inventory.records() == [
        {
            "time": START * 10**9,
            "host": "n1",
            "document": '{"host":"n1","purpose":"a \\"b\\""}',
        }
    ]


def test_a_poisoned_line_is_found_and_kept_apart(
    influxdb: InfluxDB, influxdb_v2: V2Front, database: str, store: Store, influx: InfluxSettings
) -> None:
    # Somebody else's point gave one field of one shard the wrong type: only there is a conflict.
    poison = b'nic,host=x,window=10s rx_link_ratio="none" %d' % ((START + 3_400) * 10**9)
    assert Influx(influx).send(database, [poison]) == Accepted()
    sender = shipper(store, influx)
    ship(sender)
    expected = stored(store.path)
    refused = [key for key in expected if key[0] == "nic" and "rx_link_ratio" in expected[key]]
    assert refused
    there = arrived(influxdb, database)
    del there["nic", "x", "10s", ("",), (START + 3_400) * 10**9]
    assert there == {key: fields for key, fields in expected.items() if key not in refused}
    assert sender.rejected_lines_total == len(refused)
    assert reached(sender).windows == store.last_window_id()
    (file,) = (store.path.parent / "quarantine").iterdir()
    lines = file.read_text().splitlines()
    assert sum(line.startswith("nic,") for line in lines) == len(refused)
    assert "field type conflict" in lines[0]
    assert {event.kind for event in sender.notices()} == {"lines_refused"}


def test_victoria_metrics_has_the_numbers(
    victoria_metrics: VictoriaMetrics, store: Store, tmp_path: Path
) -> None:
    ship(shipper(store, InfluxSettings(url=victoria_metrics.url)))
    victoria_metrics.flush()
    there = {
        (series.labels["window"], series.labels["gpu_uuid"], time * 10**6): value
        for series in victoria_metrics.export('{__name__="gpu_power_watts"}')
        for time, value in zip(series.times_ms, series.values, strict=True)
    }
    assert there == {
        (tier, subject[0], time): pytest.approx(fields["power_watts"])  # type: ignore[index]
        for (measurement, _, tier, subject, time), fields in stored(store.path).items()
        if measurement == "gpu"
    }


# Servers that do not behave


def flat(server: StagedServer, first: int = 0) -> list[bytes]:
    return list(itertools.chain.from_iterable(server.requests[first:]))


def test_an_outage_is_waited_for_with_patience_and_nothing_is_lost(store: Store) -> None:
    with staged_server() as server:
        settings = InfluxSettings(url=server.url, timeout_seconds=1.0)
        sender = shipper(store, settings)
        server.answers += [
            Answer(503),
            Answer(cut=True),
            Answer(429, headers={"Retry-After": "20"}),
            Answer(503),
            Answer(401),
            Answer(wait=2),
            Answer(503, headers={"Retry-After": "5"}),
        ]
        waits = [sender.step() for _ in range(7)]
        assert waits == [2.0, 4.0, 20.0, 16.0, 100.0, 64.0, 100.0]
        assert sender.position == Position(store=store.identity())
        assert sender.trouble is not None
        done = ship(sender)
        assert set(done) == {0.02}
        assert sender.trouble is None
        assert [event.kind for event in sender.notices()] == [
            "shipping_stopped",
            "shipping_resumed",
        ]
        good = flat(server, 7)
    with staged_server() as server:
        ship(shipper(store, InfluxSettings(url=server.url)))
        assert good == flat(server)


def test_a_request_that_is_too_large_is_split(store: Store) -> None:
    with staged_server() as server:
        server.answers += [Answer(413), Answer(413)]
        ship(shipper(store, InfluxSettings(url=server.url)))
        lines = server.requests[0]
        half = len(lines) // 2
        assert [len(request) for request in server.requests[1:4]] == [
            len(lines) - half,
            (len(lines) - half + 1) // 2,
            (len(lines) - half) // 2,
        ]
        assert server.requests[2] + server.requests[3] + server.requests[4] == lines


def test_a_server_that_fails_within_a_search_for_bad_lines_loses_none(store: Store) -> None:
    with staged_server() as server:
        sender = shipper(store, InfluxSettings(url=server.url))
        server.answers += [Answer(400, "bad"), Answer(204), Answer(503)]
        assert sender.step() == 2.0
        assert sender.position == Position(store=store.identity())
        assert sender.rejected_lines_total == 0
        first = server.requests[0]
        ship(sender)
        assert server.requests[3] == first


def test_one_bad_line_of_a_batch_that_is_refused_whole_is_found_quickly(store: Store) -> None:
    with staged_server() as server:
        settings = InfluxSettings(url=server.url)
        lines = _all_lines(store, settings)
        server.poison = lines[333]
        sender = shipper(store, settings)
        ship(sender)
        accepted = [
            line for request in server.requests if server.poison not in request for line in request
        ]
        assert sorted(accepted) == sorted(set(lines) - {server.poison}), "each of the others once"
        assert sender.rejected_lines_total == 1
        assert len(server.requests) < 40
    (file,) = (store.path.parent / "quarantine").iterdir()
    assert file.read_bytes() == b"# unable to parse: invalid number\n" + server.poison + b"\n"


@pytest.mark.parametrize("batch_lines", [1, 40, 2000])
def test_batches_hold_whole_windows_up_to_a_number_of_lines(
    store: Store, windows: Sequence[Window], batch_lines: int
) -> None:
    with staged_server() as server:
        settings = InfluxSettings(url=server.url, batch_lines=batch_lines)
        ship(shipper(store, settings))
        largest = max(len(window.rows) for window in windows)
        assert all(len(r) <= max(batch_lines, largest) for r in server.requests)
        assert len(flat(server)) == sum(len(window.rows) for window in windows)


def test_shipping_goes_on_where_it_was(store: Store) -> None:
    with staged_server() as server:
        settings = InfluxSettings(url=server.url, batch_lines=100)
        first = shipper(store, settings)
        for _ in range(3):
            first.step()
        ship(shipper(store, settings, first.position))
        lines = flat(server)
        assert len(lines) == len(set(lines))
        assert lines == _all_lines(store, settings)


def _all_lines(store: Store, settings: InfluxSettings) -> list[bytes]:
    influx = Influx(settings, StateTexts())
    return [
        line for _, window in store.windows_after(0, 10**6) for line in influx.window(window)[1]
    ]


class _Broken:
    """A destination with a fault of its own."""

    def __init__(self, inner: Influx) -> None:
        self.window, self.event, self.inventory = inner.window, inner.event, inner.inventory
        self.close = inner.close
        self._failing = True
        self.sent: list[bytes] = []

    def send(self, place: str, lines: Sequence[bytes]) -> Delivery:
        if self._failing:
            self._failing = False
            raise RuntimeError("a fault of ours")
        self.sent += lines
        return Accepted()


def test_a_fault_of_ours_does_not_end_the_thread(store: Store) -> None:
    destination = _Broken(Influx(InfluxSettings(url="http://127.0.0.1:1")))
    sender = Shipper(
        store.path,
        destination,
        Quarantine(store.path.parent / "quarantine", 1_000_000),
        ManualClock(),
        position=Position(),
        batch_lines=10_000,
        waits=Waits(0.01, 0.01),
    )
    sender.start()
    for _ in range(1000):
        if reached(sender).windows == store.last_window_id():
            break
        sender._stopping.wait(0.01)
    sender.stop(5.0)
    assert reached(sender).windows == store.last_window_id()
    assert len(destination.sent) == len(set(destination.sent))
