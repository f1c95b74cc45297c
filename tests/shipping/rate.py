"""The shipper beside a bare HTTP client that posts the same bytes, to one InfluxDB, in turns.

python -m tests.shipping.rate [HOURS]
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
from pathlib import Path

import urllib3

from agent.config.settings import InfluxSettings
from agent.shipping.influx import Influx
from agent.shipping.quarantine import Quarantine
from agent.shipping.shipper import Backlog, Shipper, Waits
from agent.state_texts import StateTexts
from telemetry.clock import SystemClock
from telemetry.simulation import history, load_scenario
from telemetry.store import Store
from tests.servers.influxdb import InfluxDB

START = 1_700_000_100


class Recording(Influx):
    """Remembers what it sends."""

    def __init__(self, settings: InfluxSettings) -> None:
        super().__init__(settings, StateTexts())
        self.sent: list[bytes] = []

    def send(self, bucket: str, lines):  # type: ignore[no-untyped-def]
        self.sent.append(b"\n".join(lines))
        return super().send(bucket, lines)


def ship(store: Path, destination: Influx) -> float:
    """Seconds to ship all of a store."""
    shipper = Shipper(
        store,
        destination,
        Quarantine(store.parent / "quarantine", 1_000_000),
        SystemClock(),
        batch_lines=5000,
        waits=Waits(),
        backlog=Backlog(hours=1e6, lines_per_second=1e9),
    )
    began = time.monotonic()
    while shipper.step() != 30.0:
        pass
    assert shipper.rejected_lines_total == 0
    return time.monotonic() - began


def bare(url: str, database: str, bodies: list[bytes]) -> float:
    """Seconds to post the same bytes, compressed as the shipper compresses them."""
    pool = urllib3.PoolManager()
    began = time.monotonic()
    for body in bodies:
        answer = pool.request(
            "POST",
            f"{url}/write?db={database}&precision=ns",
            body=gzip.compress(body, 6),
            headers={"Content-Encoding": "gzip"},
        )
        assert answer.status == 204
    return time.monotonic() - began


def measured(hours: float, influxdb: InfluxDB, folder: Path, rounds: int = 3) -> float:
    """The best round's ratio of rates, shipper over bare client, with a line printed for each."""
    path = folder / "agent.db"
    with Store(path) as store:
        store.append(list(history(load_scenario("training"), START, hours / 24)))
    best = 0.0
    for number in range(rounds):
        for name in (f"ours{number}", f"bare{number}"):
            influxdb.query(f'CREATE DATABASE "{name}"')
        settings = InfluxSettings(url=influxdb.url, api="v1", bucket=f"ours{number}")
        recording = Recording(settings)
        ours = ship(path, recording)
        recording.close()
        theirs = bare(influxdb.url, f"bare{number}", recording.sent)
        lines = sum(body.count(b"\n") + 1 for body in recording.sent)
        print(
            f"{lines} lines: shipper {lines / ours:.0f} a second, bare client"
            f" {lines / theirs:.0f}: {theirs / ours:.0%}"
        )
        best = max(best, theirs / ours)
    return best


def main() -> None:
    """Prints the rates."""
    with tempfile.TemporaryDirectory() as name:
        influxdb = InfluxDB.launch(Path(name))
        try:
            measured(float(sys.argv[1]) if len(sys.argv) > 1 else 48.0, influxdb, Path(name))
        finally:
            influxdb.process.stop()


if __name__ == "__main__":
    main()
