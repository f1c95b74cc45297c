"""Receivers on loopback that a test makes refuse, hang, or cut the connection."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.servers.process import free_port

CUT, REFUSE, SLOW = "cut", "refuse", "slow"
SLOWNESS = 1.5


@dataclass
class Received:
    """What a receiver confirmed, and the troubles that it makes for the next attempts."""

    port: int
    troubles: list[str] = field(default_factory=list)
    attempts: int = 0
    bodies: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def trouble(self) -> str | None:
        self.attempts += 1
        return self.troubles.pop(0) if self.troubles else None


class _Web(BaseHTTPRequestHandler):
    received: Received

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        match self.received.trouble():
            case "cut":
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            case "refuse":
                self.send_response(503)
                self.end_headers()
                return
            case "slow":
                time.sleep(SLOWNESS)
                return  # the other side has gone
        self.received.bodies.append(json.loads(body))
        self.received.paths.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass


@contextmanager
def web_server(port: int | None = None, troubles: list[str] | None = None) -> Iterator[Received]:
    """An HTTP server that takes JSON."""
    received = Received(port or free_port(), troubles or [])
    handler = type("Handler", (_Web,), {"received": received})
    server = ThreadingHTTPServer(("127.0.0.1", received.port), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield received
    server.shutdown()
    server.server_close()
    thread.join()


class _Smtp(socketserver.StreamRequestHandler):
    received: Received

    def handle(self) -> None:
        with suppress(ConnectionError):
            self._talk()

    def _talk(self) -> None:
        trouble = self.received.trouble()
        if trouble == SLOW:
            time.sleep(SLOWNESS)
            return
        self._say("220 loopback ready")
        while line := self.rfile.readline().strip().upper():
            if line.startswith(b"EHLO"):
                self._say("250 loopback")
            elif line.startswith(b"RCPT") and trouble == REFUSE:
                self._say("451 try again later")
            elif line == b"DATA":
                self._say("354 go on")
                lines = []
                while (text := self.rfile.readline()) != b".\r\n":
                    lines.append(text[1:] if text.startswith(b"..") else text)
                if trouble == CUT:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                mail = message_from_bytes(b"".join(lines), policy=policy.default)
                assert isinstance(mail, EmailMessage)
                self.received.bodies.append(mail)
                self._say("250 taken")
            elif line == b"QUIT":
                self._say("221 bye")
                return
            else:
                self._say("250 ok")

    def _say(self, text: str) -> None:
        self.wfile.write(text.encode() + b"\r\n")


@contextmanager
def smtp_server(port: int | None = None, troubles: list[str] | None = None) -> Iterator[Received]:
    """A mail server (RFC 5321, as much of it as one client needs)."""
    received = Received(port or free_port(), troubles or [])
    handler = type("Handler", (_Smtp,), {"received": received})

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    server = Server(("127.0.0.1", received.port), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield received
    server.shutdown()
    server.server_close()
    thread.join()
