"""A month of the service at speed: `python -m tests.service.month FOLDER PORT STEP_SECONDS`.

Time is a file's content, so that it goes on where a killed process left it. Everything else is
the real service: its state, its channel over HTTP, a report made by a child process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from advisor.config import Settings
from advisor.service.config import ChannelSettings, ReportSettings, ServiceSettings
from advisor.service.reports import ReportFailed
from advisor.service.service import Service

MONTH_SECONDS = 28 * 86_400
START = 1_772_323_200.0  # Sunday 2026-03-01: four Mondays follow
_MAKE = "import pathlib, sys; pathlib.Path(sys.argv[1], 'report.md').write_text(sys.argv[2])"


class FileClock:
    """Time that moves only by `advance`, durably enough for a process that is killed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._now = float(path.read_text()) if path.exists() else START

    def wall(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    def advance(self, seconds: float) -> None:
        self._now += seconds
        part = self._path.with_suffix(".part")
        part.write_text(repr(self._now))
        part.replace(self._path)


def make_report(folder: Path, due: float) -> None:
    """A report by a child process, which a kill may leave half done."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", _MAKE, str(folder), f"until {due:.0f}"], check=False
    )
    if done.returncode:
        raise ReportFailed("the child failed")


def settings(folder: Path, port: int) -> Settings:
    url = f"json://127.0.0.1:{port}/"
    return Settings(
        stores=(str(folder / "agent.db"),),
        service=ServiceSettings(state=str(folder / "advisor.db"), group_seconds=45),
        report=ReportSettings(folder=str(folder / "reports")),
        channels=(ChannelSettings("hook", "apprise", url=url, severity="info", reports=True),),
    )


def main() -> None:
    folder, port, step = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    clock = FileClock(folder / "time")
    service = Service(settings(folder, port), clock=clock, make_report=make_report)
    service.begin()
    more = int(sys.argv[5]) if sys.argv[4:5] == ["--more"] else 0
    while clock.wall() < START + MONTH_SECONDS or more > 0:
        more -= clock.wall() >= START + MONTH_SECONDS
        clock.advance(step)
        service.run_once()
    service.stop()


if __name__ == "__main__":
    main()
