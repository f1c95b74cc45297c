"""The real servers as fixtures: one of each a test process, on free loopback ports."""

import itertools
from collections.abc import Iterator

import pytest

from tests.servers.influxdb import InfluxDB, V2Front
from tests.servers.victoriametrics import VictoriaMetrics


@pytest.fixture(scope="session")
def influxdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InfluxDB]:
    """InfluxDB 1.6.7. A test that stops or kills it launches one of its own instead."""
    server = InfluxDB.launch(tmp_path_factory.mktemp("influxdb"))
    yield server
    server.process.stop()


@pytest.fixture(scope="session")
def influxdb_v2(tmp_path_factory: pytest.TempPathFactory, influxdb: InfluxDB) -> Iterator[V2Front]:
    """The version 2 write path in front of `influxdb`."""
    front = V2Front.launch(tmp_path_factory.mktemp("nginx"), influxdb)
    yield front
    front.process.stop()


@pytest.fixture(scope="session")
def database_names() -> Iterator[str]:
    return (f"db{number}" for number in itertools.count(1))


@pytest.fixture
def database(influxdb: InfluxDB, database_names: Iterator[str]) -> Iterator[str]:
    """The name of a new, empty database in `influxdb`; it is also a bucket of `influxdb_v2`."""
    name = next(database_names)
    influxdb.query(f'CREATE DATABASE "{name}"')
    yield name
    influxdb.query(f'DROP DATABASE "{name}"')


@pytest.fixture(scope="session")
def victoria_metrics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VictoriaMetrics]:
    server = VictoriaMetrics.launch(tmp_path_factory.mktemp("victoria-metrics"))
    yield server
    server.process.stop()
