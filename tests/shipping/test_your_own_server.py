"""The same way there and back on a server of yours, which Debian does not package: 2.x, 3.x, cloud.

Opt-in: INFLUX_TEST_URL and INFLUX_TEST_TOKEN, and if they are not `talla-test` and `-`,
INFLUX_TEST_BUCKET and INFLUX_TEST_ORG. The token needs to write and read the bucket; InfluxDB 2.x
needs a DBRP mapping of the bucket (one named like it is made by itself in newer versions). Points
of the year 2023 are left in the bucket, so its retention must not be shorter.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest

from advisor.history import LocalHistory
from advisor.influx_history import InfluxHistory
from advisor.service.config import InfluxReading
from agent.config.settings import InfluxSettings
from agent.shipping.delivery import Accepted, Rejected, Unauthorised
from agent.shipping.influx import Influx
from agent.shipping.quarantine import Quarantine
from agent.shipping.shipper import Shipper, Waits
from agent.state_texts import StateTexts
from telemetry.clock import ManualClock
from telemetry.metrics import FAMILIES
from telemetry.simulation import history, load_scenario
from telemetry.store import Store

START = 1_700_006_400
URL = os.environ.get("INFLUX_TEST_URL", "")
BUCKET = os.environ.get("INFLUX_TEST_BUCKET", "talla-test")

pytestmark = pytest.mark.skipif(
    not URL, reason="INFLUX_TEST_URL and INFLUX_TEST_TOKEN name no server of yours"
)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(os.environ.get("INFLUX_TEST_TOKEN", ""))
    return file


@pytest.fixture
def settings(token: Path) -> InfluxSettings:
    org = os.environ.get("INFLUX_TEST_ORG", "-")
    return InfluxSettings(URL, org=org, bucket=BUCKET, token_file=str(token))


def test_windows_go_there_and_come_back(
    settings: InfluxSettings, token: Path, tmp_path: Path
) -> None:
    host = f"talla-test-{uuid.uuid4().hex[:8]}"
    scenario = load_scenario("chatbot")
    windows = list(history(scenario, START, 0.1))
    for window in windows:
        window.host = host
    path = tmp_path / "agent.db"
    with Store(path) as store:
        store.append(
            windows, inventories=[(START, host, {**scenario.inventory().to_json(), "host": host})]
        )
    for _ in range(2):  # twice: a point that is sent again takes its own place
        shipper = Shipper(
            path,
            Influx(settings, StateTexts()),
            Quarantine(tmp_path / "quarantine", 1_000_000),
            ManualClock(START + 10_000.0),
            batch_lines=2000,
            waits=Waits(),
        )
        while shipper.step() != 30.0:
            assert shipper.trouble is None
        assert shipper.rejected_lines_total == 0
    reading = InfluxReading(url=URL, database=BUCKET, token_file=str(token), timeout_seconds=30.0)
    with LocalHistory([path]) as local, InfluxHistory(reading) as remote:
        assert host in remote.hosts()
        assert remote.span(host) == local.span(host)
        assert remote.inventory(host) == local.inventory(host)
        for f in FAMILIES:
            told = [
                h.frames(host, f.measurement, since=0, until=4e9, fields=f.fields(), texts=True)
                for h in (local, remote)
            ]
            assert told[1] == told[0], f.measurement


def test_a_point_of_another_type_is_refused_and_the_good_ones_are_kept_or_sent_again(
    settings: InfluxSettings,
) -> None:
    influx = Influx(settings)
    name = f"talla_test_{uuid.uuid4().hex[:8]}".encode()
    line = b"%s,host=n1 a=%s %d"
    assert influx.send(BUCKET, [line % (name, b"1.0", START * 10**9)]) == Accepted()
    answer = influx.send(BUCKET, [line % (name, b'"x"', (START + 1) * 10**9)])
    assert isinstance(answer, Rejected)
    assert answer.reason


def test_a_wrong_token_and_bucket_are_told(settings: InfluxSettings, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    line = [b"talla_test,host=n1 a=1.0 %d" % (START * 10**9)]
    answer = Influx(InfluxSettings(URL, org=settings.org, token_file=str(wrong))).send(BUCKET, line)
    assert isinstance(answer, Unauthorised)
    assert "token_file" in answer.reason
    absent = Influx(settings).send(f"absent-{uuid.uuid4().hex[:8]}", line)
    assert isinstance(absent, Unauthorised)
