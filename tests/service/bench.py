"""A store with alert rows, and a service over it that a test steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from advisor.config import Settings
from advisor.service.config import (
    ChannelSettings,
    DigestSettings,
    ReportSettings,
    ServiceSettings,
)
from advisor.service.reports import Maker
from advisor.service.service import Service
from telemetry.clock import ManualClock
from telemetry.event import Event, Severity
from telemetry.store import Store

NOW = 1_772_323_200.0  # Sunday, 2026-03-01 00:00 UTC


def no_report(folder: Path, due: float) -> None:
    (folder / "report.md").write_text(f"# The report until {due:.0f}\n")


class Bench:
    """One agent's store and one service, on one clock."""

    def __init__(
        self,
        folder: Path,
        *channels: ChannelSettings,
        group_seconds: float = 0.0,
        make_report: Maker = no_report,
        **settings: Any,
    ) -> None:
        self.folder = folder
        self.clock = ManualClock(NOW)
        self.store = Store(folder / "agent.db")
        self._make_report = make_report
        self.settings = Settings(
            stores=(str(folder / "agent.db"),),
            service=ServiceSettings(
                state=str(folder / "advisor.db"), group_seconds=group_seconds, poll_seconds=15
            ),
            report=ReportSettings(folder=str(folder / "reports")),
            digest=DigestSettings(hour=8),
            channels=channels,
            **settings,
        )
        self.service = self.start()

    def start(self) -> Service:
        service = Service(self.settings, clock=self.clock, make_report=self._make_report)
        service.begin()
        return service

    def restart(self) -> None:
        self.service.stop()
        self.service = self.start()

    def alert(
        self,
        rule: str,
        raised: bool = True,
        *,
        gpu: str = "GPU-1",
        host: str = "gpu01",
        severity: Severity = Severity.CRITICAL,
        owner: str = "ana",
    ) -> None:
        text = f"{rule} of {gpu} {'began' if raised else 'is over'}"
        attributes = {"subject": f"gpu {gpu}", "title": text, "owner": owner}
        event = Event(
            self.clock.wall(), host, "alert", text, severity, gpu, rule, raised, attributes
        )
        self.store.append(events=[event])

    def step(self, seconds: float = 15.0) -> None:
        """Some seconds later everything that is due is done."""
        self.clock.advance(seconds)
        self.service.run_once()

    def close(self) -> None:
        self.service.stop()
        self.store.close()
