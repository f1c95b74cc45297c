"""`/metrics`: read back by Prometheus's own parser, from a server on loopback."""

import http.client
import socket

import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent.errors import UserError
from agent.exporter import CONTENT_TYPE, ExportedSource, Latest, prefix
from telemetry.metrics import FAMILIES
from telemetry.window import Sample
from tests.agent.sources import Steady

GPU = ("gpu", "GPU-1")
PROCESS = ("gpu_process", "GPU-1", "0")


def sample() -> Sample:
    return Sample(
        0.0,
        {
            GPU: {"power_watts": 432.5, "energy_joules_total": 1e6},
            PROCESS: {"memory_bytes": 2.0**30},
            ("host",): {"cpu_busy_ratio": 0.25},
        },
        {
            GPU: {"gpu_model": 'NVIDIA "H100"\\ 80GB\nHBM3'},
            PROCESS: {"pid": "4242", "command": "secret", "workload": "training", "owner": "88"},
        },
    )


def read(page: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (point.name, tuple(sorted(point.labels.items()))): point.value
        for family in text_string_to_metric_families(page)
        for point in family.samples
    }


def test_the_page_is_what_prometheus_reads() -> None:
    latest = Latest()
    latest.take(sample(), 1.0)
    page = latest.page()
    points = read(page)
    uuid = (("gpu_uuid", "GPU-1"),)
    assert points["talla_gpu_power_watts", uuid] == 432.5
    assert points["talla_gpu_energy_joules_total", uuid] == 1e6
    assert points["talla_host_cpu_busy_ratio", ()] == 0.25
    model = (("gpu_model", 'NVIDIA "H100"\\ 80GB\nHBM3'), *uuid)
    assert points["talla_gpu_info", model] == 1
    process = (*uuid, ("owner", "88"), ("slot", "0"), ("workload", "training"))
    assert points["talla_process_info", process] == 1
    assert "4242" not in page
    assert "secret" not in page
    assert "# TYPE talla_gpu_energy_joules_total counter" in page


def test_what_is_no_longer_read_is_absent() -> None:
    latest = Latest()
    latest.take(sample(), 1.0)
    latest.take(Sample(0.0, {("host",): {"cpu_busy_ratio": 0.5}}), 6.0)
    assert "talla_gpu_power_watts" in latest.page()  # what comes every 5 s stays for so long
    latest.take(Sample(0.0, {("host",): {"cpu_busy_ratio": 0.5}}), 20.0)
    assert set(read(latest.page())) == {("talla_host_cpu_busy_ratio", ())}


def test_no_two_metrics_share_a_name() -> None:
    names = [f"{prefix(f)}_{m.name}" for f in FAMILIES for m in f.metrics]
    assert len(names) == len(set(names))
    assert not any(name.endswith("_info") for name in names)


def test_it_is_served_on_loopback_and_ends_with_the_source() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    source = ExportedSource(Steady(), "127.0.0.1", port)
    source.sample(1.0, 1)
    with pytest.raises(UserError, match=r"\[prometheus\] 127\.0\.0\.1:"):
        ExportedSource(Steady(), "127.0.0.1", port)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("Content-Type")) == (200, CONTENT_TYPE)
    assert "talla_host_" in answer.read().decode()
    connection.request("GET", "/etc/passwd")
    assert connection.getresponse().status == 404
    connection.close()
    source.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
