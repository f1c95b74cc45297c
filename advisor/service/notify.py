"""Alert rows to one channel: at least once, in order for a host, and never twice once confirmed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo

from advisor.channels import Channel, Message, NotDelivered, channel_of
from advisor.config import Settings
from advisor.service.alert_message import digest_of, message_of
from advisor.service.attempts import Attempts
from advisor.service.config import ChannelSettings
from advisor.service.schedule import newest_due
from advisor.state import AlertRow, State, snoozed
from telemetry.clock import Clock
from telemetry.event import Severity

_LOG = logging.getLogger(__name__)

_SEVERITIES = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)
_FIRST_WAIT, _LAST_WAIT = 15.0, 900.0
_MOST_ROWS = 40
"""Transitions in one message; what is more comes in the next."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """What is to be sent now, and how far the channel is once it was."""

    rows: list[AlertRow]
    places: dict[str, int]


class Courier:
    """Delivers to one channel. What another channel does is nothing to it."""

    def __init__(
        self,
        state: State,
        settings: Settings,
        target: ChannelSettings,
        clock: Clock,
        *,
        name: str | None = None,
        channel: Channel | None = None,
    ) -> None:
        self.name = target.name if name is None else name
        self.reports = target.reports
        self._state = state
        self._settings = settings
        self._target = target
        self._clock = clock
        self._channel = channel if channel is not None else channel_of(target)
        self._attempts = Attempts(_FIRST_WAIT, _LAST_WAIT)
        self._renewed = 0.0

    @property
    def trouble(self) -> str | None:
        """Why nothing is delivered at the moment, None while all is well."""
        return self._attempts.reason

    def begin(self) -> None:
        """A new channel begins with the alerts that stand, not with those of last year."""
        if self._state.stamp(f"channel:{self.name}") is not None:
            return
        last, hosts = (
            self._state.last_alert_id(),
            self._state.rows("SELECT DISTINCT host FROM alert"),
        )
        self._state.delivered(self.name, (), {host: last for (host,) in hosts})
        now = self._clock.wall()
        self._state.set_stamp(f"digest:{self.name}", self._digest_due(now))
        self._state.set_stamp(f"channel:{self.name}", now)

    def step(self) -> bool:
        """Sends what is due; whether anything was sent. A failure waits for a later step."""
        now = self._clock.wall()
        if self._attempts.waits(now):
            return False
        try:
            sent = self._alerts(now)
            sent = self._renew(now) or sent
            sent = self._digest(now) or sent
        except NotDelivered as error:
            if self._attempts.failed(str(error), now):
                _LOG.warning("channel %s: not delivered: %s; all is kept", self.name, error)
            return False
        if sent and self._attempts.worked():
            _LOG.info("channel %s: delivers again", self.name)
        return sent

    def send(self, message: Message) -> None:
        """Sends one message beside the alerts (a report). Raises NotDelivered."""
        self._channel.send(message)

    # Alerts

    def _alerts(self, now: float) -> bool:
        sent = False
        while (batch := self._batch(now)) is not None:
            if batch.rows:
                self._channel.send(message_of(batch.rows))
                sent = True
                self._renewed = now
            self._state.delivered(self.name, batch.rows, batch.places)
        return sent

    def _batch(self, now: float) -> _Batch | None:
        """The next message; None where there is nothing, or where more may come to it."""
        snoozes = self._state.snoozes(now)
        told = self._state.told(self.name)
        places: dict[str, int] = {}
        rows: list[AlertRow] = []
        taken = self._state.places(self.name)
        for row in self._state.alerts_after(taken):
            if len(rows) == _MOST_ROWS:
                break
            places[row.event.host] = row.alert_id
            if not self._wanted(row):
                continue
            if row.event.raised:
                if snoozed(row, snoozes):
                    continue
                told.add(row.course)
            elif row.course not in told:
                continue  # nobody here was told that it began
            else:
                told.discard(row.course)
            rows.append(row)
        for row in self._state.open_alerts() if len(rows) < _MOST_ROWS else ():
            # Those whose snooze has ended, and those that stood before the channel was made.
            passed = row.alert_id <= max(taken.get(row.event.host, 0), 0)
            new = row.course not in told and passed
            if new and self._wanted(row) and not snoozed(row, snoozes) and len(rows) < _MOST_ROWS:
                rows.append(row)
        if not rows:
            return _Batch([], places) if places else None
        first = min(row.received for row in rows)
        if now - first < self._settings.service.group_seconds and len(rows) < _MOST_ROWS:
            return None
        return _Batch(rows, places)

    def _wanted(self, row: AlertRow) -> bool:
        """Whether it is this channel's, and urgent enough to be told at once."""
        least = _SEVERITIES.index(Severity(self._target.severity))
        return self._matches(row) and _SEVERITIES.index(row.event.severity) >= least

    def _matches(self, row: AlertRow) -> bool:
        target = self._target
        owners = [o.strip() for o in row.event.attributes.get("owner", "").split(",")]
        return (
            _any(target.hosts, [row.event.host])
            and _any(target.rules, [row.event.rule or ""])
            and _any(target.owners, owners)
        )

    def _renew(self, now: float) -> bool:
        """Tells again what stands, where the other side forgets it; whether it did."""
        every = self._channel.renew_seconds
        if every is None or 0 <= now - self._renewed < every:
            return False
        told = self._state.told(self.name)
        standing = [row for row in self._state.open_alerts() if row.course in told]
        if standing:
            self._channel.send(message_of(standing))
        self._renewed = now
        return bool(standing)

    # The digest

    def _digest_due(self, now: float) -> float:
        digest = self._settings.digest
        return newest_due(now, digest.hour, digest.timezone)

    def _digest(self, now: float) -> bool:
        if not self._target.digest:
            return False
        due = self._digest_due(now)
        stamp = self._state.stamp(f"digest:{self.name}")
        if stamp is not None and stamp >= due:
            return False
        key = f"{self.name}#digest"
        rows = [
            row
            for row in self._state.alerts_after(self._state.places(key), limit=100_000)
            if row.received < due
        ]
        snoozes = self._state.snoozes(now)
        told = [
            row
            for row in rows
            if self._matches(row)
            and not self._wanted(row)
            and not snoozed(row, snoozes)
            and (stamp is None or row.received >= stamp)
        ]
        if told:
            day = f"{datetime.fromtimestamp(due, ZoneInfo(self._settings.digest.timezone)):%F}"
            self._channel.send(digest_of(told, self._state.open_alerts(), day))
        self._state.delivered(key, (), {row.event.host: row.alert_id for row in rows})
        self._state.set_stamp(f"digest:{self.name}", due)
        return bool(told)


def couriers(state: State, settings: Settings, clock: Clock) -> Iterator[Courier]:
    """One for each channel, and for each owner of a mail channel with `to_owners`."""
    for name, target in targets(settings):
        yield Courier(state, settings, target, clock, name=name)


def targets(settings: Settings) -> Iterator[tuple[str, ChannelSettings]]:
    """The channels by name; a mail channel to owners becomes one for each of them as well.

    The name is the key of what was delivered: it stays the same as long as the owner.
    """
    for channel in settings.channels:
        if channel.kind != "mail" or channel.to:
            yield channel.name, channel
        if channel.to_owners:
            for owner, address in settings.owners.items():
                own = replace(channel, to=(address,), owners=(owner,), reports=False)
                yield f"{channel.name}/{owner}", own


def _any(patterns: Iterable[str], names: Iterable[str]) -> bool:
    patterns = tuple(patterns)
    return not patterns or any(fnmatchcase(name, p) for name in names for p in patterns)


__all__ = ["Courier", "couriers", "targets"]
