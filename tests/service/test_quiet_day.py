"""What the service logs in a day on which nothing happens but its weekly report."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.service.service import Service
from telemetry.event import Event, Severity
from telemetry.store import Store
from tests.service.month import START, FileClock, make_report, settings

STEP_SECONDS = 60


def test_a_quiet_day_is_under_fifty_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "time").write_text(
        repr(START + 18 * 3600)
    )  # Sunday 18:00: Monday's report falls in
    clock = FileClock(tmp_path / "time")
    with Store(tmp_path / "agent.db") as store:
        alone = replace(settings(tmp_path, 0), channels=())
        service = Service(alone, clock=clock, make_report=make_report)
        service.begin()
        for _ in range(24 * 3600 // STEP_SECONDS):
            clock.advance(STEP_SECONDS)
            store.append(events=[Event(clock.wall(), "gpu01", "note", "1", Severity.INFO)])
            service.run_once()
        service.stop()
    lines = [record.getMessage() for record in caplog.records]
    assert any("report made" in line for line in lines)
    assert len(lines) < 50, lines[:60]
