"""The shipper beside a bare HTTP client that posts the same bytes, to one InfluxDB, in turns.

    python -m tests.shipping.rate [--hours HOURS] [--rounds ROUNDS]

Both write paths: 1.x by urllib3, and 2 by influxdb-client through the front. The windows are kept
as the agent keeps them, with their states.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import urllib3

from agent.config.settings import InfluxSettings
from agent.shipping.delivery import Delivery
from agent.shipping.influx import Influx
from agent.shipping.quarantine import Quarantine
from agent.shipping.shipper import Backlog, Shipper, Waits
from agent.state_texts import StateTexts
from telemetry.clock import SystemClock
from telemetry.simulation import history, load_scenario
from telemetry.store import Store
from tests.servers.influxdb import InfluxDB, V2Front

START = 1_700_000_100
PATHS = ("v1", "v2")


class Recording(Influx):
    """Remembers what it sends."""

    def __init__(self, settings: InfluxSettings) -> None:
        super().__init__(settings, StateTexts())
        self.sent: list[bytes] = []

    def send(self, bucket: str, lines: Sequence[bytes]) -> Delivery:
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


def bare(url: str, headers: Mapping[str, str], bodies: Sequence[bytes]) -> float:
    """Seconds to post the same bytes, compressed as the shipper compresses them."""
    pool = urllib3.PoolManager(headers={**headers, "Content-Encoding": "gzip"})
    began = time.monotonic()
    for body in bodies:
        answer = pool.request("POST", url, body=gzip.compress(body, 6))
        assert answer.status == 204
    return time.monotonic() - began


def measured(api: str, store: Path, influxdb: InfluxDB, front: V2Front, name: str) -> float:
    """One round's ratio of rates, shipper over bare client, with a line printed for it."""
    for side in ("ours", "bare"):
        influxdb.query(f'CREATE DATABASE "{side}{name}"')
    if api == "v1":
        settings = InfluxSettings(url=influxdb.url, api="v1", bucket=f"ours{name}")
        url, headers = f"{influxdb.url}/write?db=bare{name}&precision=ns", {}
    else:
        token = store.with_name("token")
        token.write_text(front.token)
        settings = InfluxSettings(url=front.url, bucket=f"ours{name}", token_file=str(token))
        url = f"{front.url}/api/v2/write?bucket=bare{name}&org=talla&precision=ns"
        headers = {"Authorization": f"Token {front.token}"}
    recording = Recording(settings)
    ours = ship(store, recording)
    recording.close()
    theirs = bare(url, headers, recording.sent)
    lines = sum(body.count(b"\n") + 1 for body in recording.sent)
    print(
        f"{api}, {lines} lines: shipper {lines / ours:.0f} a second, bare client"
        f" {lines / theirs:.0f}: {theirs / ours:.0%}",
        flush=True,
    )
    for side in ("ours", "bare"):
        influxdb.query(f'DROP DATABASE "{side}{name}"')
    return theirs / ours


def main() -> None:
    """Prints the rates."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=float, default=96.0)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Store(folder / "agent.db") as store:
            windows = list(history(load_scenario("training"), START, asked.hours / 24))
            StateTexts().keep(windows)
            store.append(windows)
        influxdb = InfluxDB.launch(folder)
        (folder / "front").mkdir()
        front = V2Front.launch(folder / "front", influxdb)
        try:
            for api in PATHS:
                ratios = [
                    measured(api, folder / "agent.db", influxdb, front, f"{api}{number}")
                    for number in range(asked.rounds)
                ]
                print(f"{api}: {statistics.median(ratios):.0%} in the middle of {asked.rounds}")
        finally:
            front.process.stop()
            influxdb.process.stop()


if __name__ == "__main__":
    main()
