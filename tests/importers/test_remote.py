"""History from dcgm-exporter's series in a real VictoriaMetrics, and Telegraf's in InfluxDB."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest

from advisor import cli
from advisor.history import LocalHistory
from agent.config.settings import InfluxSettings
from agent.shipping.delivery import Accepted
from agent.shipping.influx import Influx
from telemetry.window import Frame
from tests.servers.influxdb import InfluxDB
from tests.servers.victoriametrics import VictoriaMetrics

START = 1_700_006_400  # midnight UTC
STEP = 30
HOURS = 30
UUIDS = ("GPU-aaaa", "GPU-bbbb")


def exposition(host: str, node: bool) -> str:
    """What dcgm-exporter and node_exporter show, scraped every 30 s; with a gap in the night."""
    lines = []
    for i in range(HOURS * 3600 // STEP):
        if 1200 <= i < 1320:
            continue
        ms = (START + i * STEP) * 1000
        for g, uuid in enumerate(UUIDS):
            labels = (
                f'{{Hostname="{host}",UUID="{uuid}",gpu="{g}",device="nvidia{g}",'
                f'modelName="NVIDIA A100-SXM4-80GB",instance="{host}:9400",job="dcgm"}}'
            )
            values = {
                "DCGM_FI_DEV_GPU_UTIL": 60 + 10 * g,
                "DCGM_FI_DEV_FB_USED": 20_000,
                "DCGM_FI_DEV_FB_FREE": 61_920,
                "DCGM_FI_DEV_POWER_USAGE": 300.5,
                "DCGM_FI_PROF_SM_ACTIVE": 0.5,
                "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.25,
            }
            lines += [f"{name}{labels} {value} {ms}" for name, value in values.items()]
        if node:
            own = f'instance="{host}:9100"'
            lines += [
                f'node_uname_info{{{own},nodename="{host}"}} 1 {ms}',
                f"node_memory_MemTotal_bytes{{{own}}} 1e12 {ms}",
                f"node_memory_MemAvailable_bytes{{{own}}} 7.5e11 {ms}",
                f'node_cpu_seconds_total{{{own},cpu="0",mode="idle"}} {i * STEP * 0.75} {ms}',
                f"node_pressure_io_waiting_seconds_total{{{own}}} {i * STEP * 0.1} {ms}",
            ]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def scraped(victoria_metrics: VictoriaMetrics) -> str:
    for host, node in (("dgx-1", True), ("dgx-2", False)):
        request = urllib.request.Request(
            f"{victoria_metrics.url}/api/v1/import/prometheus", exposition(host, node).encode()
        )
        with urllib.request.urlopen(request, timeout=60):
            pass
    victoria_metrics.flush()
    return victoria_metrics.url


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = cli.main(["import", *arguments])
    said = capsys.readouterr()
    return code, said.out + said.err


def frames(store: Path, host: str, measurement: str, *fields: str) -> list[Frame]:
    with LocalHistory([store]) as history:
        return history.frames(
            host, measurement, since=0, until=1e12, fields=fields, texts=measurement == "gpu"
        )


UNTIL = str(START + HOURS * 3600)


def test_dcgm_series_become_history_and_a_second_run_goes_on(
    scraped: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "s.db"
    asked = ("--prometheus", scraped, "--store", str(store), "--since", "30h")
    code, said = ran(capsys, *asked, "--until", str(START + 86_400))
    assert code == 0, said
    with LocalHistory([store]) as history:
        assert history.hosts() == ["dgx-1", "dgx-2"]
        assert history.span("dgx-1") == (START, START + 86_400)
    code, said = ran(capsys, *asked, "--until", UNTIL)
    assert code == 0, said
    assert "days that were there already: 2" in said
    assert "2 hosts" in said

    for host in ("dgx-1", "dgx-2"):
        first, second = frames(
            store,
            host,
            "gpu",
            "utilization_ratio",
            "memory_used_bytes",
            "power_watts",
            "sm_active_ratio",
            "tensor_active_ratio",
        )
        assert [first.key[1], second.key[1]] == list(UUIDS)
        assert first.texts[0]["gpu_model"] == "NVIDIA A100-SXM4-80GB"
        assert first.start[0] == START
        assert all(start % 300 == 0 for start in first.start)
        # An hour is missing, less the five minutes for which the server repeats the last value.
        assert 345 <= len(first.start) <= 350
        for column, value in (
            (first.columns["utilization_ratio"], 0.6),
            (second.columns["utilization_ratio"], 0.7),
            (first.columns["memory_used_bytes"], 20_000 * 2**20),
            (first.columns["power_watts"], 300.5),
            (first.columns["sm_active_ratio"], 0.5),
            (first.columns["tensor_active_ratio"], 0.25),
        ):
            assert column == pytest.approx([value] * len(column))
    (own,) = frames(store, "dgx-1", "host", "memory_used_bytes", "cpu_busy_ratio")
    assert own.columns["memory_used_bytes"][5] == pytest.approx(2.5e11)
    assert own.columns["cpu_busy_ratio"][5] == pytest.approx(0.25, abs=0.01)
    assert frames(store, "dgx-2", "host", "memory_used_bytes") == []


def test_telegraf_points_become_history(
    influxdb: InfluxDB, database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        (
            f"nvidia_smi,host=gpu-7,index={g},name=Tesla\\ T4,uuid={uuid},pstate=P0"
            f" utilization_gpu={30 + g}i,memory_used=1024i,memory_total=15360i,power_draw=40.5,"
            f"temperature_gpu=50i,clocks_current_sm=1590i {(START + i * 60) * 10**9}"
        ).encode()
        for i in range(1440)
        for g, uuid in enumerate(UUIDS)
    ]
    influx = Influx(InfluxSettings(url=influxdb.url, api="v1"))
    assert influx.send(database, lines) == Accepted()
    influx.close()
    store = tmp_path / "s.db"
    code, said = ran(
        capsys,
        *("--telegraf", f"{influxdb.url}?db={database}", "--store", str(store)),
        *("--since", "2d", "--until", str(START + 86_400)),
    )
    assert code == 0, said
    assert "2880 rows of 1 hosts" in said
    first, second = frames(
        store, "gpu-7", "gpu", "utilization_ratio", "memory_used_bytes", "power_watts"
    )
    assert len(first) == len(second) == 288
    assert set(first.columns["utilization_ratio"]) == {0.3}
    assert set(second.columns["utilization_ratio"]) == {0.31}
    assert set(first.columns["memory_used_bytes"]) == {2.0**30}
    assert set(first.columns["power_watts"]) == {40.5}
    assert first.texts[0]["gpu_model"] == "Tesla T4"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "name files, or --prometheus"),
        (("--prometheus", "http://127.0.0.1:9"), 1, "http://127.0.0.1:9: cannot be read"),
        (("--prometheus", "x"), 2, "--prometheus x: expected http"),
        (("--telegraf", "http://127.0.0.1:9"), 1, "http://127.0.0.1:9"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    answer, said = ran(capsys, *arguments, "--store", str(tmp_path / "s.db"))
    assert answer == code
    assert words in said
    assert len(said.strip().splitlines()) == 1
