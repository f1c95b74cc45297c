"""The check-up: its marks, and how it looks."""

import re
from pathlib import Path

from agent.config.settings import GpuSettings, InfluxSettings, Settings, StoreSettings
from agent.doctor.checkup import Check, Mark, checkup
from agent.doctor.page import page
from agent.host.hostfs import HostFs
from agent.machine import MachineSource
from telemetry.clock import ManualClock
from tests.servers.influxdb import V2Front
from tests.shipping.staged_server import Answer, staged_server

NO_GPU = GpuSettings(enabled=False)


def checks(settings: Settings, root: str = "/") -> dict[str, Check]:
    source = MachineSource(settings, "n1", hostfs=HostFs(root))
    return {check.name: check for check in checkup(settings, source, None, ManualClock())}


def test_only_a_machine_of_which_nothing_can_be_read_is_fatal(tmp_path: Path) -> None:
    settings = Settings(gpu=NO_GPU, store=StoreSettings(str(tmp_path / "agent.db")))
    assert checks(settings)["host"].mark is Mark.OK
    (tmp_path / "empty").mkdir()
    nothing = checks(settings, str(tmp_path / "empty"))["host"]
    assert nothing.mark is Mark.FATAL
    assert "/proc" in nothing.text


def test_a_folder_that_is_not_there_is_named_with_the_remedy(tmp_path: Path) -> None:
    settings = Settings(gpu=NO_GPU, store=StoreSettings(str(tmp_path / "no" / "agent.db")))
    store = checks(settings)["store"]
    assert store.mark is Mark.PROBLEM
    assert str(tmp_path / "no") in store.text
    assert store.remedy is not None


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    path.write_bytes(b"nothing of ours" * 100)
    store = checks(Settings(gpu=NO_GPU, store=StoreSettings(str(path))))["store"]
    assert store.mark is Mark.PROBLEM
    assert "cannot be read as a store" in store.text


def test_influxdb_is_tried_without_leaving_a_point(
    influxdb_v2: V2Front, database: str, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(influxdb_v2.token)
    store = StoreSettings(str(tmp_path / "agent.db"))

    def tried(influx: InfluxSettings) -> Check:
        return checks(Settings(gpu=NO_GPU, store=store, influx=influx))["influxdb"]

    good = InfluxSettings(influxdb_v2.url, bucket=database, token_file=str(token))
    assert tried(good).mark is Mark.OK
    assert influxdb_v2.influxdb.query("SHOW MEASUREMENTS", database) == []
    absent = tried(InfluxSettings(influxdb_v2.url, bucket="nowhere", token_file=str(token)))
    assert absent.mark is Mark.PROBLEM
    assert "'nowhere'" in absent.text
    with staged_server() as server:
        server.answers.append(Answer(401))
        refused = tried(InfluxSettings(server.url))
    assert refused.mark is Mark.PROBLEM
    assert "token" in refused.text
    away = tried(InfluxSettings(server.url))
    assert away.mark is Mark.PROBLEM
    assert "cannot be reached" in away.text


def test_colours_are_for_terminals_and_change_no_word() -> None:
    told = [
        Check("host", Mark.OK, "13 metrics"),
        Check("gpu driver", Mark.PROBLEM, "no GPU can be read", "install it"),
    ]
    plain = page("n1", told, colour=False)
    bright = page("n1", told, colour=True)
    assert "\x1b[33m" in bright
    assert re.sub(r"\x1b\[\d+m", "", bright) == plain
    assert plain.splitlines()[2:5] == [
        "✓ host        13 metrics",
        "! gpu driver  no GPU can be read",
        "              → install it",
    ]
    assert plain.endswith("one thing could be better.")
