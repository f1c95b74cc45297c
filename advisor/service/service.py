"""The scheduled service: what it does, how often, and nothing heavy within it.

A job is a method that takes what is due and returns; what must not be forgotten lies in
advisor.db, so that the service may be killed at any moment. Whatever loads numpy, scikit-learn or
matplotlib runs in a child process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from advisor.config import Settings
from advisor.errors import ConfigError
from advisor.service.intake import Intake
from advisor.service.notify import Courier, couriers
from advisor.service.outbox import InfluxOutbox, LocalOutbox, Outbox
from advisor.service.reports import Maker, WeeklyReport, report_child
from advisor.state import State
from telemetry.clock import Clock, SystemClock

_LOG = logging.getLogger(__name__)

_SILENCE_EVERY = 60.0
_REPORT_EVERY = 60.0
_RETENTION_EVERY = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class Job:
    """Something that is done again and again, by itself in a thread."""

    name: str
    every: float
    run: Callable[[], Any]


class Service:
    """All jobs on one state. `jobs` may be extended before `start`."""

    def __init__(
        self,
        settings: Settings,
        *,
        stores: Iterable[Path] = (),
        config: Path | None = None,
        clock: Clock | None = None,
        make_report: Maker | None = None,
    ) -> None:
        """Opens the state. Raises AdvisorError where it cannot be written."""
        self.settings = settings
        self._clock = clock or SystemClock()
        stores = tuple(stores)
        outboxes = outboxes_of(settings, self._clock, stores)
        self.state = State(settings.service.state)
        service = settings.service
        self.intake = Intake(
            self.state, outboxes, self._clock, silent_seconds=service.silent_seconds
        )
        self.couriers: tuple[Courier, ...] = tuple(couriers(self.state, settings, self._clock))
        self.report = WeeklyReport(
            self.state,
            settings,
            self.couriers,
            self._clock,
            make_report or report_child(settings, config, stores),
        )
        self.jobs: list[Job] = [
            Job("intake", service.poll_seconds, self.intake.step),
            Job("silence", _SILENCE_EVERY, self.intake.look_for_silence),
            *(Job(f"channel {c.name}", service.poll_seconds, c.step) for c in self.couriers),
            Job("report", _REPORT_EVERY, self.report.step),
            Job("retention", _RETENTION_EVERY, self.prune),
        ]
        self._scheduler: BackgroundScheduler | None = None
        self._faults: dict[str, str] = {}

    def begin(self) -> None:
        """Takes in what is there, and sets what a first start must not make up for."""
        self._guarded(Job("intake", 0.0, self.intake.step))
        for courier in self.couriers:
            courier.begin()
        self.report.begin()

    def start(self) -> None:
        """Begins to run the jobs; each has a thread while it runs, and never runs twice at once."""
        self.begin()
        # APScheduler warns each time that a job is still running when it is due again.
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        workers = ThreadPoolExecutor(len(self.jobs))
        scheduler = BackgroundScheduler(executors={"default": workers}, timezone="UTC")
        for job in self.jobs:
            scheduler.add_job(
                self._guarded,
                IntervalTrigger(seconds=job.every, timezone="UTC"),
                args=(job,),
                name=job.name,
                coalesce=True,  # after a sleep of the machine once, not a hundred times
                max_instances=1,
                misfire_grace_time=None,
            )
        scheduler.start()
        self._scheduler = scheduler
        _LOG.info("serving: %s", ", ".join(job.name for job in self.jobs))

    def run_once(self) -> None:
        """Runs every job once, in order."""
        for job in self.jobs:
            self._guarded(job)

    def stop(self) -> None:
        """Ends without waiting for a channel that does not answer."""
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=False)
        self.state.close()

    def prune(self) -> None:
        """Deletes what is older than it is to be kept."""
        before = self._clock.wall() - self.settings.service.keep_days * 86_400
        gone = self.state.prune(before)
        if gone:
            _LOG.info("%d old alert rows deleted", gone)

    def _guarded(self, job: Job) -> None:
        """A fault of ours in one job is told once, and ends no other."""
        try:
            job.run()
        except Exception as error:  # noqa: BLE001 - see above
            text = f"{type(error).__name__}: {error}"
            if self._faults.get(job.name) != text:
                _LOG.error("%s failed: %s", job.name, text)
            _LOG.debug("the fault", exc_info=True)
            self._faults[job.name] = text
        else:
            self._faults.pop(job.name, None)


def outboxes_of(settings: Settings, clock: Clock, stores: Iterable[Path] = ()) -> list[Outbox]:
    """The stores that are named (here or in the settings) and InfluxDB. Raises ConfigError."""
    paths = list(stores) or [Path(store) for store in settings.stores]
    found: list[Outbox] = [LocalOutbox(path, clock) for path in paths]
    if settings.influx.url:
        found.append(InfluxOutbox(settings.influx))
    if not found:
        raise ConfigError(
            "advisor.toml: stores: name the agent's store, or [influx] url, to serve from"
        )
    return found


__all__ = ["Job", "Service", "outboxes_of"]
