"""VictoriaMetrics as the write target of the real influxdb-client."""

from influxdb_client.client.influxdb_client import InfluxDBClient
from influxdb_client.client.write_api import SYNCHRONOUS

from tests.servers.victoriametrics import VictoriaMetrics


def test_a_field_becomes_a_series_with_its_tags(victoria_metrics: VictoriaMetrics) -> None:
    lines = (
        b"arrival,host=n1,gpu_uuid=GPU-1 power_watts=212.5,temperature_celsius=61 1700000000\n"
        b"arrival,host=n1,gpu_uuid=GPU-1 power_watts=70 1700000010\n"
    )
    with (
        InfluxDBClient(url=victoria_metrics.url, token="unused", org="talla") as client,
        client.write_api(write_options=SYNCHRONOUS) as write_api,
    ):
        write_api.write("talla", record=lines, write_precision="s")
        # The same lines again: a point is kept once.
        write_api.write("talla", record=lines, write_precision="s")
    victoria_metrics.flush()

    found = {
        series.labels["__name__"]: series
        for series in victoria_metrics.export('{__name__=~"arrival_.*"}')
    }
    assert set(found) == {"arrival_power_watts", "arrival_temperature_celsius"}
    power = found["arrival_power_watts"]
    assert (power.labels["host"], power.labels["gpu_uuid"]) == ("n1", "GPU-1")
    assert dict(zip(power.times_ms, power.values, strict=True)) == {
        1700000000000: 212.5,
        1700000010000: 70.0,
    }


def test_a_bad_line_is_dropped_without_a_word(victoria_metrics: VictoriaMetrics) -> None:
    lines = b"odd,host=n1 power_watts=1 1700000000\nodd,host=n2 power_watts= 1700000000\n"
    with (
        InfluxDBClient(url=victoria_metrics.url, token="unused", org="talla") as client,
        client.write_api(write_options=SYNCHRONOUS) as write_api,
    ):
        write_api.write("talla", record=lines, write_precision="s")
    victoria_metrics.flush()

    kept = victoria_metrics.export('{__name__="odd_power_watts"}')
    assert [series.labels["host"] for series in kept] == ["n1"]
