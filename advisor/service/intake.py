"""Takes in alert rows from all outboxes, and adds those that no agent can give."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime

from advisor.errors import AdvisorError
from advisor.service.outbox import Outbox
from advisor.state import State
from telemetry.clock import Clock
from telemetry.event import Event, Severity
from telemetry.store import StoreError

_LOG = logging.getLogger(__name__)

OWN = "advisor"
"""The outbox of the advisor's own alerts, and the host of those that are about itself."""
_KNOWN_SECONDS = 2 * 86_400.0
"""A host that was silent for longer before anybody looked is an old recording, not a fault."""
_GONE_SECONDS = 14 * 86_400.0


class Intake:
    """One step takes what is new. Nothing that an outbox does stops the others."""

    def __init__(
        self, state: State, outboxes: Iterable[Outbox], clock: Clock, *, silent_seconds: float
    ) -> None:
        self._state = state
        self._outboxes = tuple(outboxes)
        self._clock = clock
        self._silent = silent_seconds
        self._failing: dict[str, float] = {}

    def step(self) -> int:
        """Takes in new rows; returns how many there were."""
        count = 0
        for outbox in self._outboxes:
            try:
                taken = outbox.take(self._state.marks(outbox.name))
                if taken.events or taken.marks:
                    now = self._clock.wall()
                    count += self._state.take_in(outbox.name, taken.events, taken.marks, now)
            except (AdvisorError, StoreError, sqlite3.Error, OSError) as error:
                self._failed(outbox, error)
            else:
                self._went_well(outbox)
        return count

    def look_for_silence(self) -> None:
        """Raises `host_silent` for hosts that send nothing more, and ends it when they do."""
        now = self._clock.wall()
        for row in self._state.open_alerts():
            if row.event.rule == "host_silent" and now - row.event.time > _GONE_SECONDS:
                text = f"{row.event.host} has been silent for two weeks: it is no longer expected"
                self._add(row.event.host, "host_silent", text, now, raised=False)
        standing = {(r.event.host, r.event.rule) for r in self._state.open_alerts()}
        for outbox in self._outboxes:
            if outbox.name in self._failing:
                continue  # who cannot listen cannot say that others are silent
            try:
                seen = outbox.last_seen()
            except (AdvisorError, StoreError, sqlite3.Error, OSError) as error:
                self._failed(outbox, error)
                continue
            for host, last in seen.items():
                silent = now - last
                told = (host, "host_silent") in standing
                if not told and self._silent <= silent <= _KNOWN_SECONDS:
                    self._raise(host, last, now)
                elif told and silent < self._silent:
                    text = f"{host} sends again"
                    self._add(host, "host_silent", text, now, raised=False)

    def _raise(self, host: str, last: float, now: float) -> None:
        since = f"{datetime.fromtimestamp(last, UTC):%Y-%m-%d %H:%M} UTC"
        text = (
            f"Nothing has arrived from {host} since {since}. Either the machine or its agent is"
            " down, or what it sends does not arrive: this cannot be told from here. Look first"
            f" at: the machine itself (ping, console), then systemctl status talla-agent on it."
        )
        self._add(host, "host_silent", text, now, raised=True, since=since)

    def _failed(self, outbox: Outbox, error: Exception) -> None:
        now = self._clock.wall()
        since = self._failing.setdefault(outbox.name, now)
        if since == now:
            _LOG.warning("%s: cannot be read: %s", outbox.name, error)
        told = any(r.course == self._course(outbox) for r in self._state.open_alerts())
        if now - since >= self._silent and not told:
            text = (
                f"The advisor cannot read {outbox.name}: {error}. Alerts of its hosts do not"
                " arrive meanwhile; none is lost."
            )
            subject = outbox.name
            self._add(OWN, "history_unreadable", text, now, raised=True, subject=subject)

    def _went_well(self, outbox: Outbox) -> None:
        if self._failing.pop(outbox.name, None) is not None:
            _LOG.info("%s: is read again", outbox.name)
        if any(r.course == self._course(outbox) for r in self._state.open_alerts()):
            text = f"The advisor reads {outbox.name} again."
            now = self._clock.wall()
            subject = outbox.name
            self._add(OWN, "history_unreadable", text, now, raised=False, subject=subject)

    @staticmethod
    def _course(outbox: Outbox) -> tuple[str, str, str]:
        return OWN, "history_unreadable", outbox.name

    def _add(
        self, host: str, rule: str, text: str, now: float, *, raised: bool, **more: str
    ) -> None:
        attributes = {"subject": f"host {host}", "title": text.split(". ")[0], **more}
        severity = Severity.CRITICAL if rule == "host_silent" else Severity.WARNING
        event = Event(now, host, "alert", text, severity, None, rule, raised, attributes)
        self._state.take_in(OWN, [event], {}, now)


__all__ = ["OWN", "Intake"]
