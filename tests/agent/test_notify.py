"""The words to systemd, on a real socket."""

import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from agent.notify import Notifier


def test_nothing_is_said_where_nobody_listens() -> None:
    notifier = Notifier({})
    notifier.ready()
    notifier.status("well")
    notifier.close()


def test_a_manager_that_went_away_is_no_reason_to_fail(tmp_path: Path) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")})
    notifier.ready()
    notifier.close()


def test_the_watchdog_is_fed_as_often_as_it_asks_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "30000000"}
        notifier = Notifier(environment)
        fed = []
        for second in range(12):
            now[0] = 100.0 + second
            notifier.watchdog()
            with suppress(BlockingIOError):
                fed.append((second, manager.recv(100)))
        assert fed == [(second, b"WATCHDOG=1") for second in (0, 5, 10)]
        assert environment == {}
        notifier.close()


@pytest.mark.parametrize("abstract", [False, True])
def test_words_arrive_and_no_child_inherits_the_address(tmp_path: Path, abstract: bool) -> None:
    name = f"\0talla-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name)
        manager.settimeout(5)
        environment = {"NOTIFY_SOCKET": name.replace("\0", "@"), "OTHER": "x"}
        notifier = Notifier(environment)
        assert environment == {"OTHER": "x"}
        notifier.ready()
        notifier.status("one\ntwo")
        notifier.status("one\ntwo")
        notifier.watchdog()
        assert [manager.recv(100) for _ in range(3)] == [
            b"READY=1",
            b"STATUS=one two",
            b"WATCHDOG=1",
        ]
        notifier.close()
