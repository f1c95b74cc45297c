"""`kill -9` at random moments while writing and shipping: afterwards InfluxDB has every committed
window, once and whole."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent.shipping.line_protocol import window_lines
from telemetry.store import StoreReader
from telemetry.window import Key, Row, Window
from tests.servers.influxdb import InfluxDB
from tests.shipping.points import arrived, stored

WRITER = """
import sys, time
from pathlib import Path
from agent.config.settings import InfluxSettings
from agent.shipping.influx import Influx
from agent.keeper import Keeper
from agent.shipping.quarantine import Quarantine
from agent.shipping.shipper import Shipper, Waits
from telemetry.clock import SystemClock
from telemetry.store import Store
from tests.shipping.test_kills import window

path, url, bucket = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
store = Store(path, mend_at=time.time())
assert store.recovered is None
keeper = Keeper(store, "n1", memory_windows=10)
shipper = Shipper(
    path, Influx(InfluxSettings(url=url, api="v1", bucket=bucket)),
    Quarantine(path.parent / "quarantine", 1_000_000), SystemClock(),
    batch_lines=60, waits=Waits(0.05, 0.1),
)
shipper.start()
made = store.last_window_id()
print("ready", flush=True)
for step in range(int(sys.argv[4])):
    keeper.append(time.time(), [window(made + i) for i in range(2)])
    made += 2
    shipper.wake()
    keeper.move(shipper.position)
    time.sleep(0.004)
if sys.argv[5] == "end":
    while shipper.position is None or shipper.backlog_windows or shipper.position.live or (
        shipper.position.windows != store.last_window_id()
    ):
        time.sleep(0.01)
    shipper.stop(10.0)
    keeper.move(shipper.position)
    keeper.close()
else:
    time.sleep(60)
"""


def window(i: int) -> Window:
    rows: dict[Key, Row] = {
        ("gpu", f"GPU-{g}"): Row(
            {"covered_seconds": 10.0, "power_watts": 100.0 + i, "utilization_ratio": 0.5},
            {"gpu_model": "NVIDIA H100 80GB HBM3"},
        )
        for g in range(4)
    }
    return Window("n1", 10, 1_700_006_400 + i * 10, 10, rows)


def writer(path: Path, url: str, bucket: str, steps: int, how: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), url, bucket, str(steps), how],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def killed(times: int, chance: random.Random, path: Path, influxdb: InfluxDB, bucket: str) -> None:
    for _ in range(times):
        with writer(path, influxdb.url, bucket, 1000, "until killed") as process:
            time.sleep(chance.uniform(0.0, 0.3))
            process.send_signal(signal.SIGKILL)
    with StoreReader(path) as store:
        committed = store.last_window_id()
    assert committed > times
    with writer(path, influxdb.url, bucket, 1, "end") as process:
        assert process.wait(120) == 0
    kept = stored(path)
    there = arrived(influxdb, bucket)  # fails where a point is there twice
    assert there == kept, "every window, every row, every field"
    assert len(kept) == 4 * (committed + 2)
    assert len(window_lines(window(0))) == 4


def test_no_committed_window_is_lost_to_a_few_kills(
    tmp_path: Path, influxdb: InfluxDB, database: str
) -> None:
    killed(4, random.Random(7), tmp_path / "agent.db", influxdb, database)


@pytest.mark.long
def test_no_committed_window_is_lost_to_two_hundred_kills(
    tmp_path: Path, influxdb: InfluxDB, database: str
) -> None:
    killed(200, random.Random(8), tmp_path / "agent.db", influxdb, database)
