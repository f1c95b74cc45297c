"""What the check-up says of a store that was set aside, and of buckets."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config.settings import GpuSettings, InfluxSettings, Settings, StoreSettings
from agent.doctor.check import Mark
from agent.doctor.checkup import checkup
from agent.doctor.influx import check_influx, kept_seconds
from agent.machine import MachineSource
from telemetry.clock import ManualClock
from telemetry.store import Store
from tests.servers.influxdb import InfluxDB
from tests.shipping.staged_server import Answer, staged_server


def test_how_long_a_database_keeps_is_read(influxdb: InfluxDB, database: str) -> None:
    settings = InfluxSettings(influxdb.url, api="v1", bucket=database)
    assert kept_seconds(settings, database) == 0.0
    influxdb.query(f'CREATE RETENTION POLICY "week" ON "{database}" DURATION 7d REPLICATION 1')
    assert kept_seconds(settings, f"{database}/week") == 7 * 86_400
    (check,) = check_influx(settings)
    assert check.mark is Mark.OK
    assert "for ever" in check.text
    short = InfluxSettings(influxdb.url, api="v1", bucket=f"{database}/week")
    (check,) = check_influx(short)
    assert check.mark is Mark.PROBLEM
    assert "for 7 days" in check.text
    assert "bucket_5m" in (check.remedy or "")
    both = InfluxSettings(
        influxdb.url, api="v1", bucket=f"{database}/week", bucket_5m=f"{database}/autogen"
    )
    assert [c.mark for c in check_influx(both)] == [Mark.OK, Mark.OK]


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        ('{"buckets": [{"retentionRules": [{"type": "expire", "everySeconds": 172800}]}]}', 172800),
        ('{"buckets": [{"retentionRules": []}]}', 0.0),
        ('{"buckets": []}', None),
        ('{"code": "forbidden"}', None),
        ("<html>", None),
    ],
)
def test_how_long_a_bucket_keeps_is_read_where_the_token_may(
    answer: str, seconds: float | None
) -> None:
    with staged_server() as server:
        server.answers.append(Answer(200, answer))
        assert kept_seconds(InfluxSettings(server.url), "talla") == seconds


def test_a_damaged_store_that_was_set_aside_is_told(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    Store(path).close()
    with path.open("r+b") as file:
        file.write(bytes(4096))
    Store(path, mend_at=1.7e9).close()
    settings = Settings(gpu=GpuSettings(enabled=False), store=StoreSettings(str(path)))
    source = MachineSource(settings, "n1")
    try:
        checks = checkup(settings, source, None, ManualClock())
    finally:
        source.close()
    (aside,) = (c for c in checks if "set aside" in c.text)
    assert aside.mark is Mark.PROBLEM
    assert str(tmp_path / "agent.db.damaged-20231114T221320Z") in aside.text
