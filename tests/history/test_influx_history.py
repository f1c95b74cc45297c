"""A server's windows in its store and in a real InfluxDB: the same frames, the same findings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor import cli
from advisor.assess import assess
from advisor.commands.reading import influx_settings
from advisor.digests import DayDigests
from advisor.errors import UsageError
from advisor.history import History, LocalHistory
from advisor.influx_history import InfluxHistory
from advisor.period import period
from advisor.rulebook import Rulebook
from advisor.service.config import InfluxReading
from advisor.state import State
from agent.config.settings import InfluxSettings
from agent.shipping.influx import Influx
from agent.shipping.quarantine import Quarantine
from agent.shipping.shipper import Shipper, Waits
from agent.state_texts import StateTexts
from telemetry.clock import ManualClock
from telemetry.event import Event, Severity
from telemetry.metrics import FAMILIES
from telemetry.simulation import history, load_scenario
from telemetry.store import Store
from tests.servers.influxdb import InfluxDB

START = 1_700_000_100
SCENARIOS = ("training_few_cores", "chatbot")
DAYS = 1.25


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two servers, two days, with events and inventories."""
    path = tmp_path_factory.mktemp("history") / "fleet.db"
    with Store(path) as store:
        for name in SCENARIOS:
            scenario = load_scenario(name)
            inventory = scenario.inventory()
            for tier in (300, 10):
                windows = [w for w in history(scenario, START, DAYS) if w.tier == tier]
                store.append(windows)
            store.append(
                inventories=[(START, inventory.host, inventory.to_json())],
                events=[
                    Event(
                        START + 86_400.25,
                        inventory.host,
                        "xid",
                        "Xid 79",
                        Severity.CRITICAL,
                        "GPU-1",
                        attributes={"xid": "79"},
                    ),
                    Event(START + 86_500.0, inventory.host, "alert", "hot", rule="r", raised=True),
                ],
            )
    return path


@pytest.fixture(scope="module")
def shipped(store: Path, influxdb: InfluxDB) -> Iterator[InfluxReading]:
    influxdb.query('CREATE DATABASE "fleet"')
    shipper = Shipper(
        store,
        Influx(InfluxSettings(url=influxdb.url, api="v1", bucket="fleet"), StateTexts()),
        Quarantine(store.parent / "quarantine", 1_000_000),
        ManualClock(START + 86_400.0 * 3),
        batch_lines=5000,
        waits=Waits(),
    )
    while shipper.step() != 30.0:
        pass
    assert shipper.rejected_lines_total == 0
    yield InfluxReading(url=influxdb.url, database="fleet")
    influxdb.query('DROP DATABASE "fleet"')


@pytest.fixture
def local(store: Path) -> Iterator[LocalHistory]:
    with LocalHistory([store]) as history:
        yield history


@pytest.fixture
def remote(shipped: InfluxReading) -> Iterator[InfluxHistory]:
    with InfluxHistory(shipped) as history:
        yield history


def test_all_that_a_history_tells_is_the_same(local: LocalHistory, remote: InfluxHistory) -> None:
    assert remote.hosts() == local.hosts()
    assert len(remote.hosts()) == 2
    for host in local.hosts():
        assert remote.span(host) == local.span(host)
        assert remote.inventory(host) == local.inventory(host)
        for since in (0.0, START + 7200.0):
            told, kept = (h.inventories(host, since=since, until=4e9) for h in (remote, local))
            assert [i for _, i in told] == [i for _, i in kept]
            assert [t for t, _ in told] == pytest.approx([t for t, _ in kept])
        assert remote.events(host, since=0, until=4e9) == local.events(host, since=0, until=4e9)


@pytest.mark.parametrize("texts", [True, False])
def test_frames_are_the_same_field_by_field(
    local: LocalHistory, remote: InfluxHistory, texts: bool
) -> None:
    since, until = START + 7200.0, START + 100_000.0
    for host in local.hosts():
        for f in FAMILIES:
            told = [
                h.frames(
                    host, f.measurement, since=since, until=until, fields=f.fields(), texts=texts
                )
                for h in (local, remote)
            ]
            assert told[1] == told[0]


def judged(history: History, host: str) -> str:
    span = period(history, host, 7 * 86_400.0)
    answer = assess(history, host, span, span, Rulebook.load())
    assert answer.findings
    return json.dumps(
        [
            [f.to_json() for f in answer.findings],
            [repr(s) for s in answer.segments],
            [repr(h) for h in answer.hours],
            [repr(o) for o in answer.owners],
        ]
    )


def test_findings_phases_and_hours_are_the_same(local: LocalHistory, remote: InfluxHistory) -> None:
    for host in local.hosts():
        assert judged(remote, host) == judged(local, host)


def test_a_day_is_read_once(shipped: InfluxReading, influxdb: InfluxDB, tmp_path: Path) -> None:
    host = load_scenario("chatbot").inventory().host
    answers, read, kept = [], 0, 0
    for _ in range(2):
        with (
            State(tmp_path / "advisor.db") as state,
            DayDigests(state) as digests,
            InfluxHistory(shipped, digests) as reading,
        ):
            answers.append(judged(reading, host))
            read, kept = reading.days_read, reading.days_from_digests
    assert answers[0] == answers[1]
    assert read == 0
    assert kept > 10
    # A window that arrives late makes its day be read again.
    late = (START + 43_200) * 10**9
    sender = Influx(InfluxSettings(url=influxdb.url, api="v1", bucket="fleet"))
    line = b"host,host=%s,window=5m window_seconds=300.0,covered_seconds=300.0 %d"
    sender.send("fleet", [line % (host.encode(), late + 10**9)])
    with (
        State(tmp_path / "advisor.db") as state,
        DayDigests(state) as digests,
        InfluxHistory(shipped, digests) as again,
    ):
        judged(again, host)
        assert again.days_read == 1
    influxdb.query(
        f'DELETE FROM "host" WHERE "host" = \'{host}\' AND time = {late + 10**9}', "fleet"
    )


def test_every_reading_command_takes_influx(
    store: Path, shipped: InfluxReading, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"{shipped.url}?db=fleet"
    for command in ("findings", "phases", "hours", "check"):
        told = []
        for source in (("--store", str(store)), ("--influx", url)):
            assert cli.main([command, "--json", *source]) == 0
            told.append(json.loads(capsys.readouterr().out))
        assert told[0]
        assert told[1] == told[0], command


def test_an_absent_database_and_server_are_one_line(
    influxdb: InfluxDB, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["findings", "--influx", f"{influxdb.url}?db=nobody-made-it"]) == 1
    assert "nobody-made-it" in capsys.readouterr().err
    assert cli.main(["findings", "--influx", "http://127.0.0.1:9"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "http://127.0.0.1:9" in line


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("influx.example.org", "expected http://"),
        ("http://me:secret@h:8086", "no password"),
        ("http://h:8086?bucket=x", "'bucket' is not known"),
    ],
)
def test_a_wrong_address_is_named(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as told:
        influx_settings(InfluxReading(), url)
    assert "secret" not in str(told.value)
