"""Visitors who open connections and do not ask."""

from __future__ import annotations

import contextlib
import socket
import time
import urllib.error
import urllib.request

import pytest

from advisor.web import live
from advisor.web.patience import ImpatientProtocol
from tests.web.serving import served
from tests.web.test_guard import Nothing

_HEAD = b"GET /api/now HTTP/1.1\r\nHost: localhost\r\n"


def _line(url: str) -> socket.socket:
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=30)


@pytest.mark.parametrize("begun", [b"", b"GET / HT", _HEAD], ids=["nothing", "a word", "a line"])
def test_a_head_that_does_not_end_is_hung_up(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr(ImpatientProtocol, "head_seconds", 0.3)
    with served(Nothing()) as url, _line(url) as line:
        line.sendall(begun)
        assert line.recv(100) == b""


def test_the_second_head_must_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImpatientProtocol, "head_seconds", 0.5)
    with served(Nothing()) as url, _line(url) as line:
        line.sendall(_HEAD + b"\r\n")
        assert line.recv(5000).startswith(b"HTTP/1.1 200")
        line.sendall(_HEAD)
        while line.recv(5000):
            pass


def test_an_open_page_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer has not ended, however long it waits for news."""
    monkeypatch.setattr(ImpatientProtocol, "head_seconds", 0.1)
    monkeypatch.setattr(live, "_TICK_SECONDS", 1.0)
    with served(Nothing()) as url, urllib.request.urlopen(f"{url}/api/live", timeout=40) as told:
        assert told.readline().startswith(b"data: ")
        told.readline()
        assert told.readline().startswith(b"data: ")  # a sign of life, a look later


def test_two_hundred_silent_connections_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImpatientProtocol, "head_seconds", 2.0)
    with served(Nothing()) as url, contextlib.ExitStack() as crowd:
        for _ in range(220):
            crowd.enter_context(_line(url))
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/api/now", timeout=30)
        assert refused.value.code == 503
        refused.value.close()
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"{url}/api/now", timeout=30) as answer:
                    assert answer.status == 200
                    break
            except urllib.error.HTTPError as error:
                error.close()
                assert time.monotonic() < deadline
                time.sleep(0.2)
