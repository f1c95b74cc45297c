"""The weekly report: made by a child process, kept in a folder a week, told to channels once."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from zoneinfo import ZoneInfo

from advisor.channels import Message, NotDelivered
from advisor.config import Settings
from advisor.service.attempts import Attempts
from advisor.service.notify import Courier
from advisor.service.schedule import newest_due
from advisor.state import State
from telemetry.clock import Clock
from telemetry.event import Severity

_LOG = logging.getLogger(__name__)

STAMP = "report"
"""The stamp of the newest report that was made."""
_LONGEST = 3600.0
_FIRST_WAIT, _LAST_WAIT = 60.0, 3600.0
_MAIL_PAGE = "mail.html"
"""A page for mail, if the report has one; its pictures are the PNG files beside it."""

Maker = Callable[[Path, float], None]
"""Makes a report of the time until the second argument into a folder. Raises ReportFailed."""


class ReportFailed(Exception):
    """The report could not be made; one line."""


class WeeklyReport:
    """Makes the report when it is due, and tells it to the channels that want it."""

    def __init__(
        self,
        state: State,
        settings: Settings,
        couriers: Sequence[Courier],
        clock: Clock,
        make: Maker,
    ) -> None:
        self._state = state
        self._settings = settings
        self._couriers = tuple(c for c in couriers if c.reports)
        self._clock = clock
        self._make = make
        self._making = Attempts(_FIRST_WAIT, _LAST_WAIT)
        self._telling = {c.name: Attempts(_FIRST_WAIT, _LAST_WAIT) for c in self._couriers}

    def begin(self) -> None:
        """The first report is the next one: none is made up from before there was a service."""
        now = self._clock.wall()
        due = self._due(now)
        if self._state.stamp(STAMP) is None:
            self._state.set_stamp(STAMP, due)
        for courier in self._couriers:
            if self._state.stamp(_told(courier)) is None:
                self._state.set_stamp(_told(courier), self._state.stamp(STAMP) or due)

    def step(self) -> Path | None:
        """Makes and tells what is due; the folder of a report that was made now."""
        if not self._settings.report.enabled:
            return None
        now = self._clock.wall()
        made = None
        due = self._due(now)
        stamp = self._state.stamp(STAMP)
        if (stamp is None or stamp < due) and not self._making.waits(now):
            made = self._try(due, now)
        for courier in self._couriers:
            self._tell(courier, now)
        return made

    def folder(self, due: float) -> Path:
        """Where the report of a scheduled time lies."""
        report = self._settings.report
        local = datetime.fromtimestamp(due, ZoneInfo(report.timezone))
        return Path(report.folder) / f"{local:%Y-%m-%d}"

    def _due(self, now: float) -> float:
        report = self._settings.report
        return newest_due(now, report.hour, report.timezone, report.day)

    def _try(self, due: float, now: float) -> Path | None:
        folder = self.folder(due)
        # Made beside its place, so that a folder that is there is a whole report.
        part = folder.with_name(f".{folder.name}.part")
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            self._make(part, due)
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(part, folder)
        except (ReportFailed, OSError) as error:
            if self._making.failed(str(error), now):
                _LOG.error("the report could not be made, and is tried again: %s", error)
            return None
        self._making.worked()
        self._state.set_stamp(STAMP, due)
        self._drop_old()
        _LOG.info("report made: %s", folder)
        return folder

    def _drop_old(self) -> None:
        kept = Path(self._settings.report.folder)
        folders = sorted(p for p in kept.glob("20??-??-??") if p.is_dir())
        for folder in folders[: -self._settings.report.keep]:
            shutil.rmtree(folder, ignore_errors=True)

    def _tell(self, courier: Courier, now: float) -> None:
        made = self._state.stamp(STAMP)
        told = self._state.stamp(_told(courier))
        if made is None or (told is not None and told >= made):
            return
        folder, attempts = self.folder(made), self._telling[courier.name]
        if not folder.is_dir() or attempts.waits(now):
            return
        try:
            courier.send(report_message(folder))
        except NotDelivered as error:
            if attempts.failed(str(error), now):
                _LOG.warning(
                    "channel %s: the report is not delivered, and is kept: %s", courier.name, error
                )
            return
        if attempts.worked():
            _LOG.info("channel %s: the report is delivered", courier.name)
        self._state.set_stamp(_told(courier), made)


def report_message(folder: Path) -> Message:
    """The report of a folder as a message: its Markdown, its mail page, the HTML attached."""
    text = "\n\n".join(p.read_text("utf-8") for p in sorted(folder.glob("*.md")))
    text = text or f"The report lies in {folder}.\n"
    page = folder / _MAIL_PAGE
    if page.exists():
        html = page.read_text("utf-8")
        images = {p.stem: p.read_bytes() for p in sorted(folder.glob("*.png"))}
    else:
        html, images = f"<pre>{escape(text)}</pre>", {}
    files = tuple(p for p in sorted(folder.glob("report*.html")) if "-server-" not in p.name)
    title = f"Talla: right-sizing report of {folder.name}"
    return Message(title, text, html, Severity.INFO, (), images, files)


def report_child(settings: Settings, config: Path | None, stores: Sequence[Path] = ()) -> Maker:
    """Makes the report by `talla-advisor report` in a process of its own: what it loads and
    computes goes with it."""

    def make(folder: Path, due: float) -> None:
        command = [sys.executable, "-m", "advisor.cli", "report"]
        command += ["-o", str(folder), "--format", "html,md,json,mail", "--lang", settings.language]
        command += ["--until", str(int(due)), "--state", settings.service.state]
        for store in stores:
            command += ["--store", str(store)]
        if config is not None:
            command += ["--config", str(config)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_LONGEST, check=False
            )
        except subprocess.TimeoutExpired:
            raise ReportFailed(f"it took longer than {_LONGEST:.0f} s") from None
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise ReportFailed(lines[-1])

    return make


def _told(courier: Courier) -> str:
    return f"{STAMP}:{courier.name}"


__all__ = ["STAMP", "Maker", "ReportFailed", "WeeklyReport", "report_child", "report_message"]
