"""The real influxdb-client against the real InfluxDB, as the shipper uses them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from influxdb_client.client.influxdb_client import InfluxDBClient
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.rest import ApiException

from tests.servers.influxdb import InfluxDB, V2Front

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


class Writer(Protocol):
    """Sends lines whose times count in ``precision``, and raises as influxdb-client does."""

    def __call__(self, bucket: str, lines: bytes, precision: str = "s") -> None: ...


@contextlib.contextmanager
def writing(front: V2Front, token: str | None = None, gzip: bool = False) -> Iterator[Writer]:
    with (
        InfluxDBClient(
            url=front.url, token=token or front.token, org=front.org, enable_gzip=gzip
        ) as client,
        client.write_api(write_options=SYNCHRONOUS) as write_api,
    ):

        def write(bucket: str, lines: bytes, precision: str = "s") -> None:
            write_api.write(bucket, record=lines, write_precision=precision)

        yield write


@pytest.mark.parametrize("precision", list(NANOSECONDS))
def test_bytes_come_back_field_by_field(
    influxdb: InfluxDB, influxdb_v2: V2Front, database: str, precision: str
) -> None:
    lines = (
        b'gpu,host=n1,gpu_uuid=GPU-1 power_watts=212.5,samples_count=10i,state="busy" 1700000000\n'
        b"gpu,host=n1,gpu_uuid=GPU-1 power_watts=70 1700000010\n"
        b"gpu,host=n1,gpu_uuid=GPU-2 power_watts=0.25,reachable=false 1700000000\n"
    )
    with writing(influxdb_v2) as write:
        write(database, lines, precision)

    found = influxdb.query('SELECT * FROM "gpu" GROUP BY "gpu_uuid"', database)

    second, unit = 1700000000, NANOSECONDS[precision]
    by_gpu = {series.tags["gpu_uuid"]: series.records() for series in found}
    assert by_gpu == {
        "GPU-1": [
            {
                "time": second * unit,
                "host": "n1",
                "power_watts": 212.5,
                "samples_count": 10,
                "state": "busy",
            },
            {"time": (second + 10) * unit, "host": "n1", "power_watts": 70},
        ],
        "GPU-2": [
            {"time": second * unit, "host": "n1", "power_watts": 0.25, "reachable": False},
        ],
    }


def test_gzip_and_a_named_retention_policy(
    influxdb: InfluxDB, influxdb_v2: V2Front, database: str
) -> None:
    influxdb.query(
        f'CREATE RETENTION POLICY "long" ON "{database}" DURATION INF REPLICATION 1', database
    )
    with writing(influxdb_v2, gzip=True) as write:
        write(f"{database}/long", b"host load=1 1700000000")

    assert influxdb.count("host", "load", database) == 0
    assert influxdb.query('SELECT * FROM "long"."host"', database)[0].rows == [
        [1700000000 * 10**9, 1]
    ]


def test_the_same_point_again_is_one_point(
    influxdb: InfluxDB, influxdb_v2: V2Front, database: str
) -> None:
    line = b"gpu,host=n1 power_watts=1 1700000000"
    with writing(influxdb_v2) as write:
        write(database, line)
        write(database, line)

    assert influxdb.count("gpu", "power_watts", database) == 1


def test_a_bad_token_is_401_and_stores_nothing(
    influxdb: InfluxDB, influxdb_v2: V2Front, database: str
) -> None:
    with writing(influxdb_v2, token="stale") as write, pytest.raises(ApiException) as refused:
        write(database, b"gpu power_watts=1 1")

    assert refused.value.status == 401
    assert influxdb.count("gpu", "power_watts", database) == 0


def test_an_absent_bucket_is_404(influxdb_v2: V2Front) -> None:
    with writing(influxdb_v2) as write, pytest.raises(ApiException) as refused:
        write("nobody-made-it", b"gpu power_watts=1 1")

    assert refused.value.status == 404


@pytest.mark.parametrize(
    ("bad_line", "complaint"),
    [
        (b'gpu,host=n2 power_watts="hot" 1700000010', "partial write"),
        (b"gpu,host=n2 power_watts= 1700000010", "unable to parse"),
    ],
    ids=["type-conflict", "syntax"],
)
def test_a_batch_with_one_bad_line_is_400_and_keeps_the_good_ones(
    influxdb: InfluxDB, influxdb_v2: V2Front, database: str, bad_line: bytes, complaint: str
) -> None:
    first = b"gpu,host=n1 power_watts=1 1700000000"
    last = b"gpu,host=n3 power_watts=3 1700000020"
    with writing(influxdb_v2) as write:
        write(database, first)
        with pytest.raises(ApiException) as refused:
            write(database, b"\n".join([first, bad_line, last]))

    assert refused.value.status == 400
    assert complaint in str(refused.value.body)
    kept = influxdb.query('SELECT "power_watts" FROM "gpu"', database)[0].rows
    assert kept == [[1700000000 * 10**9, 1], [1700000020 * 10**9, 3]]


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    for part in ("server", "front"):
        (tmp_path / part).mkdir()
    server = InfluxDB.launch(tmp_path / "server")
    with contextlib.ExitStack() as stack:
        stack.callback(server.process.stop)
        front = V2Front.launch(tmp_path / "front", server)
        stack.callback(front.process.stop)
        server.query('CREATE DATABASE "talla"')
        with writing(front) as write:
            for second in range(20):
                line = f"gpu power_watts={second} {1700000000 + second}".encode()
                write("talla", line)

        server.process.kill()
        server.process.start()

        assert server.count("gpu", "power_watts", "talla") == 20


def test_a_refused_query_says_why(influxdb: InfluxDB, database: str) -> None:
    with pytest.raises(RuntimeError, match="error parsing query"):
        influxdb.query("SELECT", database)


def _write_ticks(front: V2Front, database: str, ticks: int) -> None:
    """8 GPUs, one line a GPU and tick of 10 s, 20 fields, 5,000 lines a batch."""
    fields = ",".join(f"f{number}={number}.5" for number in range(20))
    lines = [
        f"gpu,host=n1,gpu_uuid=GPU-{gpu} {fields} {1700000000 + 10 * tick}"
        for tick in range(ticks)
        for gpu in range(8)
    ]
    with writing(front, gzip=True) as write:
        for start in range(0, len(lines), 5000):
            batch = "\n".join(lines[start : start + 5000]).encode()
            write(database, batch)


def test_a_few_batches_arrive_whole(
    influxdb: InfluxDB, influxdb_v2: V2Front, database: str
) -> None:
    _write_ticks(influxdb_v2, database, ticks=1000)
    assert influxdb.count("gpu", "f19", database) == 8000


@pytest.mark.long
def test_a_week_of_ten_second_rows_arrives_whole(
    influxdb: InfluxDB, influxdb_v2: V2Front, database: str
) -> None:
    _write_ticks(influxdb_v2, database, ticks=60_480)
    assert influxdb.count("gpu", "f19", database) == 483_840
