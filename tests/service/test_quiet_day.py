"""What the service logs in a day on which nothing happens but its weekly report."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.service.config import ChannelSettings
from advisor.service.service import Service
from telemetry.event import Event, Severity
from telemetry.store import Store
from tests.service.month import START, FileClock, make_report, settings
from tests.service.servers import web_server

DAY = 24 * 3600
STEP_SECONDS = 120


@contextlib.contextmanager
def a_day(folder: Path, *channels: ChannelSettings) -> Iterator[Callable[[int], None]]:
    """A service from Sunday 18:00 on, so that Monday's report falls in; a function that lets so
    many seconds pass."""
    (folder / "time").write_text(repr(START + 18 * 3600))
    clock = FileClock(folder / "time")
    with Store(folder / "agent.db") as store:
        alone = replace(settings(folder, 0), channels=channels)
        service = Service(alone, clock=clock, make_report=make_report)
        service.begin()

        def passes(seconds: int) -> None:
            for _ in range(seconds // STEP_SECONDS):
                clock.advance(STEP_SECONDS)
                store.append(events=[Event(clock.wall(), "gpu01", "note", "1", Severity.INFO)])
                service.run_once()

        alert = Event(clock.wall(), "gpu01", "alert", "x", Severity.CRITICAL, "G", "gpu_lost", True)
        store.append(events=[replace(alert, attributes={"subject": "gpu G", "title": "x"})])
        yield passes
        service.stop()


def test_a_quiet_day_is_under_fifty_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with a_day(tmp_path) as passes:
        passes(DAY)
    lines = [record.getMessage() for record in caplog.records]
    assert any("report made" in line for line in lines)
    assert len(lines) < 50, lines[:60]


def test_a_dead_channel_is_told_once_and_when_it_works_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An alert and the weekly report wait for it the whole day."""
    caplog.set_level(logging.INFO)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and listens to nobody
        port = taken.getsockname()[1]
        hook = ChannelSettings("hook", "apprise", url=f"json://127.0.0.1:{port}/", reports=True)
        with a_day(tmp_path, hook) as passes:
            passes(DAY)
            told = [record.getMessage() for record in caplog.records]
            taken.close()
            with web_server(port=port) as server:
                passes(2 * 3600)
            assert len(server.bodies) == 2
    told_since = [record.getMessage() for record in caplog.records][len(told) :]
    of_it = [line.split(": ")[1] for line in told if line.startswith("channel hook: ")]
    assert of_it == ["not delivered", "the report is not delivered, and is kept"], told[:60]
    assert len(told) < 50, told[:60]
    assert sorted(line for line in told_since if "hook" in line) == [
        "channel hook: delivers again",
        "channel hook: the report is delivered",
    ]
