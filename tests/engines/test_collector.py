"""Engines found from real processes that listen, and asked over real connections."""

import http.server
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.collectors.collector import Sources
from agent.collectors.engine import EngineCollector
from agent.engines import loopback
from agent.engines.loopback import FetchFailed, fetch
from agent.engines.names import RANDOM_PORTS
from agent.host.hostfs import HostFs
from telemetry.metrics import ENGINE
from telemetry.window import Sample

UUID = "GPU-0"
PROCESS = ("gpu_process", UUID, "0")


@contextmanager
def engine(folder: Path) -> Iterator[tuple[int, int, int]]:
    """A process whose command is `vllm serve`; its pid, its port, another port of it."""
    script = folder / "vllm"
    shutil.copy(Path(__file__).parent / "engine_server.py", script)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(script), "serve", "--served-model-name", "chat"]
    process = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        other = int(process.stdout.readline())
        assert int(process.stdout.readline()) == port
        yield process.pid, port, other
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def sample(pid: int, **texts: str) -> Sample:
    told = {"pid": str(pid), "state": "running", "workload": "llm_inference", **texts}
    return Sample(0.0, {("gpu", UUID): {}, PROCESS: {}}, {PROCESS: told})


def collect(collector: EngineCollector, now: float, pid: int) -> Sample:
    taken = sample(pid)
    collector.collect(now, taken)
    collector.wait(10.0)
    collector.collect(now + 1.0, taken)
    return taken


def test_an_engine_is_found_by_the_port_of_its_command_line(tmp_path: Path) -> None:
    with engine(tmp_path) as (pid, port, other):
        collector = EngineCollector(Sources())
        start = time.monotonic()
        taken = collect(collector, start, pid)
        assert port in RANDOM_PORTS
        key = ("engine", "other-0")
        assert [k for k in taken.rows if k[0] == "engine"] == [key]
        assert ("engine", str(other)) not in taken.rows  # no port that nobody named
        assert taken.rows[key] == {
            "kv_cache_usage_ratio": 0.25,
            "kv_cache_tokens": 1600.0,
            "requests_running": 4.0,
            "requests_waiting": 0.0,
        }
        assert set(taken.rows[key]) <= {metric.name for metric in ENGINE.metrics}
        model = "Qwen/Qwen2.5-7B-Instruct"
        assert taken.texts[key] == {"engine": "vllm", "gpu_uuids": UUID, "model": model}
        assert taken.texts[PROCESS]["model"] == model
        assert taken.texts[PROCESS]["model_source"] == "engine"
        again = collect(collector, start + 15.0, pid)
        assert again.rows[key]["generation_tokens_per_second"] > 0
        gone = Sample(0.0, {})
        collector.collect(start + 60.0, gone)
        assert gone.rows == {}


def test_a_process_that_trains_is_asked_nothing(tmp_path: Path) -> None:
    with engine(tmp_path) as (pid, _, _):
        collector = EngineCollector(Sources())
        taken = sample(pid, workload="training")
        collector.collect(1.0, taken)
        collector.wait(5.0)
        collector.collect(2.0, taken)
        assert [k for k in taken.rows if k[0] == "engine"] == []


def test_it_can_be_switched_off_and_then_costs_nothing() -> None:
    collector = EngineCollector(Sources(engines=False))
    taken = sample(1)
    collector.collect(1.0, taken)
    assert set(taken.rows) == {("gpu", UUID), PROCESS}
    assert "switched off" in collector.unavailable()["engine"]


def test_an_address_of_the_configuration_is_asked(tmp_path: Path) -> None:
    with engine(tmp_path) as (_, port, _):
        hostfs = HostFs(tmp_path)  # a container: its process shows no port
        collector = EngineCollector(
            Sources(hostfs=hostfs, engine_urls=(f"http://127.0.0.1:{port}",))
        )
        taken = collect(collector, time.monotonic(), 4242)
        assert taken.texts["engine", "other-0"]["gpu_uuids"] == UUID


def test_an_engine_that_cannot_be_found_says_what_to_do(tmp_path: Path) -> None:
    collector = EngineCollector(Sources(hostfs=HostFs(tmp_path)))
    collector.collect(1.0, sample(4242))
    (reason,) = collector.unavailable().values()
    assert "give its address as [engine] urls" in reason


@contextmanager
def answering(answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> Iterator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_redirect_is_not_followed() -> None:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "http://127.0.0.1:1/elsewhere")
        handler.end_headers()

    with answering(answer) as port:
        assert fetch("127.0.0.1", port, "/metrics").status == 302


def test_a_page_without_end_is_given_up() -> None:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 1_000_000)
        except OSError:
            pass

    with answering(answer) as port, pytest.raises(FetchFailed, match="larger than 4 MiB"):
        fetch("127.0.0.1", port, "/metrics")


def test_a_page_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "SECONDS", 0.2)
    done = threading.Event()

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not done.wait(0.05):
            try:
                handler.wfile.write(b"x")
            except OSError:
                return

    with answering(answer) as port:
        with pytest.raises(FetchFailed, match="takes longer than"):
            fetch("127.0.0.1", port, "/metrics")
        done.set()


def test_nobody_there_is_a_reason() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(FetchFailed, match="refused"):
        fetch("127.0.0.1", port, "/metrics")
