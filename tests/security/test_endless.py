"""Whoever reads from a server gives up on one that never ends, and follows it nowhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event as Signal
from threading import Thread
from typing import Literal

import pytest

from advisor.channels import Message, NotDelivered
from advisor.channels.alertmanager import Alertmanager
from advisor.errors import AdvisorError
from advisor.importers.prometheus import Prometheus
from advisor.influxql import InfluxQL
from advisor.service.config import ChannelSettings, InfluxReading
from agent.config.settings import InfluxSettings
from agent.doctor.influx import kept_seconds
from agent.engines import loopback
from agent.shipping.delivery import Retry, Unauthorised
from agent.shipping.influx import Influx
from telemetry import bounded
from telemetry.event import Event, Severity


def huge(handler: BaseHTTPRequestHandler, done: Signal) -> None:
    """As much as the line carries."""
    handler.send_response(200)
    handler.end_headers()
    while not done.is_set():
        handler.wfile.write(b" " * 1_000_000)


def dripping(handler: BaseHTTPRequestHandler, done: Signal) -> None:
    """A letter now and then, soon enough for any timeout of a single wait."""
    handler.send_response(200)
    handler.end_headers()
    while not done.wait(0.05):
        handler.wfile.write(b" ")


def packed(handler: BaseHTTPRequestHandler, done: Signal) -> None:
    """A few bytes that would unpack to gigabytes."""
    handler.send_response(200)
    handler.send_header("Content-Encoding", "gzip")
    handler.send_header("Content-Length", "20")
    handler.end_headers()
    handler.wfile.write(b"\x1f\x8b\x08" + b"\x00" * 17)


def redirecting(handler: BaseHTTPRequestHandler, done: Signal) -> None:
    """To where the token is collected."""
    if handler.path.startswith("/elsewhere"):
        handler.server.visited = True  # type: ignore[attr-defined]
    handler.send_response(307)
    handler.send_header("Location", "/elsewhere")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


Answer = Callable[[BaseHTTPRequestHandler, Signal], None]


@contextlib.contextmanager
def served(answer: Answer) -> Iterator[tuple[ThreadingHTTPServer, int]]:
    done = Signal()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(OSError):
                answer(self, done)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server, server.server_port
    finally:
        done.set()
        server.shutdown()
        server.server_close()


def report_reads(port: int, folder: Path) -> None:
    (folder / "token").write_text("secret")
    reading = InfluxReading(url=f"http://127.0.0.1:{port}", token_file=str(folder / "token"))
    asked = InfluxQL(reading)
    try:
        asked.query("SELECT a FROM gpu")
    finally:
        asked.close()


def import_reads(port: int, folder: Path) -> None:
    Prometheus(f"http://127.0.0.1:{port}", token="secret", timeout=10.0).hosts(0, 1)


def alertmanager_answers(port: int, folder: Path) -> None:
    url = f"http://127.0.0.1:{port}"
    event = Event(1_790_000_000.0, "gpu01", "alert", "text", Severity.WARNING)
    message = Message("title", "text", Severity.WARNING, alerts=(event,))
    Alertmanager(ChannelSettings("a", "alertmanager", url=url)).send(message)


def doctor_asks(port: int, folder: Path) -> None:
    (folder / "token").write_text("secret")
    url = f"http://127.0.0.1:{port}"
    settings = InfluxSettings(url=url, bucket="b", org="o", token_file=str(folder / "token"))
    if kept_seconds(settings, "b") is None:
        raise AdvisorError("not told")


CASES = [
    (reader, answer)
    for reader in (report_reads, import_reads, alertmanager_answers, doctor_asks)
    for answer in (huge, dripping, packed, redirecting)
    # Of Alertmanager's answer the status alone is read.
    if (reader, answer) != (alertmanager_answers, packed)
]


@pytest.mark.parametrize(("reader", "answer"), CASES, ids=lambda function: function.__name__)
def test_a_reader_gives_up(
    reader: Callable[[int, Path], None],
    answer: Answer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounded, "_WAITS", 0.05)
    with served(answer) as (server, port):
        with pytest.raises((AdvisorError, NotDelivered)) as told:
            reader(port, tmp_path)
        assert not hasattr(server, "visited")
    assert "secret" not in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("api", ["v1", "v2"])
@pytest.mark.parametrize("answer", [huge, dripping, redirecting], ids=lambda f: f.__name__)
def test_the_shipper_gives_up_and_keeps_what_it_has(
    api: Literal["v1", "v2"], answer: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "_WAITS", 0.05)
    (tmp_path / "token").write_text("secret")
    token = str(tmp_path / "token")
    with served(answer) as (server, port):
        influx = Influx(InfluxSettings(url=f"http://127.0.0.1:{port}", api=api, token_file=token))
        outcome = influx.send("b", [b"gpu,host=n1 power_watts=1 1"])
        influx.close()
        assert not hasattr(server, "visited")
    assert isinstance(outcome, Unauthorised if answer is redirecting else Retry)
    assert "secret" not in outcome.reason
    assert "\n" not in outcome.reason


def test_an_engine_whose_head_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "SECONDS", 0.3)

    def answer(handler: BaseHTTPRequestHandler, done: Signal) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-")
        while not done.wait(0.05):
            handler.wfile.write(b"a")

    with served(answer) as (_, port):
        began = time.monotonic()
        with pytest.raises(loopback.FetchFailed, match="takes longer than"):
            loopback.fetch("127.0.0.1", port, "/metrics")
        assert time.monotonic() - began < 60  # it would have gone on for hours
