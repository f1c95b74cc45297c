"""`talla-agent run` as a process: fake NVML library, real store, real InfluxDB."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from telemetry.store import StoreReader
from tests.agent.command import talla_agent
from tests.agent.staged_agent import Server, children, stop, until
from tests.servers.influxdb import InfluxDB, V2Front
from tests.shipping.points import arrived, stored


@pytest.fixture
def server(fakenvml: Path, tmp_path: Path, influxdb_v2: V2Front, database: str) -> Iterator[Server]:
    token = tmp_path / "token"
    token.write_text(influxdb_v2.token)
    server = Server(
        fakenvml,
        tmp_path,
        f"[influx]\nurl = '{influxdb_v2.url}'\nbucket = '{database}'\ntoken_file = '{token}'\n"
        "retry_seconds = 0.2\n",
    )
    yield server
    server.kill()


def sample_and_compare(server: Server, influxdb: InfluxDB, database: str, seconds: float) -> None:
    process = server.start()
    until(lambda: server.windows() > 0)
    time.sleep(seconds)
    until(lambda: any(event.kind == "gpu_lost" for event in server.events()))
    second = talla_agent("run", "--config", server.config)
    assert second.code == 1
    assert "another process writes this store" in second.complaint()
    stop(process)
    log = server.log.read_text()
    assert "Traceback" not in log

    kept = stored(server.store)
    there = arrived(influxdb, database)
    assert there == kept
    assert {key[2] for key in kept} == {"10s", "5m"}
    gpus = {key[3][0] for key in kept if key[0] == "gpu"}  # type: ignore[index]
    assert len(gpus) == 8
    assert {"agent", "gpu", "gpu_process", "host"} <= {key[0] for key in kept}
    with StoreReader(server.store) as store:
        rows = [
            row
            for _, w in store.windows_after(0, 1000)
            for k, row in w.rows.items()
            if k[0] == "gpu"
        ]
    assert all(row.texts["state"] for row in rows), "judged before they were kept"
    # What a card lacks is nowhere.
    without = [key for key in kept if key[0] == "gpu" and "utilization_ratio" not in kept[key]]
    assert without
    kinds = [event.kind for event in server.events()]
    assert kinds[0] == "agent_start"
    assert kinds[-1] == "agent_stop"
    (events,) = influxdb.query('SELECT count("sequence") FROM "event"', database)
    assert events.rows[0][1] == len(kinds)
    assert influxdb.query('SELECT "document" FROM "inventory"', database)


def test_the_store_and_influxdb_hold_the_same(
    server: Server, influxdb: InfluxDB, database: str
) -> None:
    sample_and_compare(server, influxdb, database, 4.0)


@pytest.mark.long
def test_the_store_and_influxdb_hold_the_same_after_a_minute(
    server: Server, influxdb: InfluxDB, database: str
) -> None:
    sample_and_compare(server, influxdb, database, 60.0)


def test_what_a_killed_agent_kept_is_shipped_once_by_the_next(
    server: Server, influxdb: InfluxDB, database: str, influxdb_v2: V2Front
) -> None:
    # The first agent finds no server; what it kept must outlive it.
    good = server.config.read_text()
    server.config.write_text(good.replace(influxdb_v2.url, "http://127.0.0.1:9"))
    first = server.start()
    until(lambda: server.windows() >= 1)
    first.kill()
    first.wait()
    until(lambda: not children(first.pid))
    assert influxdb.count("gpu", "covered_seconds", database) == 0

    server.config.write_text(good)
    second = server.start()
    until(lambda: server.cursor() >= 2)
    stop(second)
    assert arrived(influxdb, database) == stored(server.store)
    starts = [event for event in server.events() if event.kind == "agent_start"]
    assert len(starts) == 2
