"""A write endpoint that answers as a test stages it, as no healthy server can be made to."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """A status with headers and body; `cut` closes the connection instead, `wait` comes first."""

    status: int = 204
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0
    cut: bool = False


@dataclass
class StagedServer:
    """Gives `answers` in turn and then 204; keeps the lines of every request and its token."""

    url: str
    answers: list[Answer] = field(default_factory=list)
    requests: list[list[bytes]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    poison: bytes | None = None
    """A request with these bytes is refused as a whole, as some servers do."""


@contextlib.contextmanager
def staged_server(tls: ssl.SSLContext | None = None) -> Iterator[StagedServer]:
    """A server on a free loopback port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.block_on_close = False  # a request that is to hang may outlive the test
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme = "http" if tls is None else "https"
    staged = StagedServer(f"{scheme}://127.0.0.1:{server.server_address[1]}")
    server.staged = staged  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield staged
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer([])

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self._answer(body.split(b"\n"))

    def _answer(self, lines: list[bytes]) -> None:
        staged: StagedServer = self.server.staged  # type: ignore[attr-defined]
        if lines:
            staged.requests.append(lines)
        staged.tokens.append(self.headers.get("Authorization", ""))
        answer = staged.answers.pop(0) if staged.answers else Answer()
        if staged.poison is not None and any(staged.poison in line for line in lines):
            answer = Answer(400, '{"message": "unable to parse: invalid number"}')
        time.sleep(answer.wait)
        if answer.cut:
            self.wfile.write(b"HTTP/1.1 2")
            self.close_connection = True
            return
        with contextlib.suppress(OSError):
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body.encode("latin-1"))

    def log_message(self, *args: Any) -> None:
        pass
