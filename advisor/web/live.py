"""The newest picture, looked at only while somebody watches, and told to all who do."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from advisor.state import Snooze
from advisor.web.picture import AlertNow, HostNow, Picture, Source, SourceError, plain

_LOG = logging.getLogger(__name__)
_TICK_SECONDS = 10.0
_MOST_WATCHERS = 50

Snoozes = Callable[[], Sequence[Snooze]]
"""Whose delivery is held back at this moment."""


class TooManyWatchers(Exception):
    """No more connections are kept open."""


class Live:
    """Looks at the source every few seconds while there are watchers."""

    def __init__(
        self,
        source: Source,
        snoozes: Snoozes | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`wall` tells Unix time, for a visitor to tell how old data are."""
        self._wall = wall
        self._source = source
        self._snoozes = snoozes
        self._picture = Picture()
        self._trouble: str | None = None
        self._looked: float | None = None  # monotonic
        self._lock = asyncio.Lock()
        self._watchers = 0
        self.looks = 0
        self.cost_seconds = 0.0
        """Processor seconds of all looks."""

    async def now(self) -> dict[str, Any]:
        """The whole picture, not older than one look."""
        await self._look()
        return self._document(self._picture.hosts, self._picture.alerts)

    async def watch(self) -> AsyncIterator[dict[str, Any]]:
        """The whole picture, then what changed, and a sign of life every ten seconds.

        Raises TooManyWatchers. A slow reader misses pictures in between, never the newest; nothing
        is queued for it.
        """
        if self._watchers >= _MOST_WATCHERS:
            raise TooManyWatchers
        self._watchers += 1
        try:
            await self._look()
            told = self._picture
            trouble = self._trouble
            yield {**self._document(told.hosts, told.alerts), "whole": True}
            since = time.monotonic()
            while True:
                await asyncio.sleep(self._wait())
                await self._look()
                picture = self._picture
                if picture is not told or trouble != self._trouble:
                    known = {host.host: host for host in told.hosts}
                    gone = known.keys() - {host.host for host in picture.hosts}
                    changed = tuple(h for h in picture.hosts if known.get(h.host) != h)
                    alerts = picture.alerts if picture.alerts != told.alerts else None
                    if changed or alerts is not None or gone or trouble != self._trouble:
                        yield {**self._document(changed, alerts), "gone": sorted(gone)}
                        since = time.monotonic()
                    told, trouble = picture, self._trouble
                if time.monotonic() - since >= _TICK_SECONDS:
                    yield self._document((), None)
                    since = time.monotonic()
        finally:
            self._watchers -= 1

    def _wait(self) -> float:
        """Until the next look is due; all watchers wake then, and one looks for all."""
        assert self._looked is not None
        return max(0.001, self._looked + self._source.every - time.monotonic())

    async def _look(self) -> None:
        async with self._lock:
            if (
                self._looked is not None
                and time.monotonic() - self._looked < self._source.every * 0.9
            ):
                return
            try:
                picture, cost = await asyncio.to_thread(_timed, self._source.look)
                if self._snoozes is not None:
                    picture = _snoozed(picture, self._snoozes())
                self.cost_seconds += cost
                self.looks += 1
                if picture != self._picture:
                    self._picture = picture
                if self._trouble is not None:
                    _LOG.info("the page's source can be read again")
                self._trouble = None
            except SourceError as error:
                if str(error) != self._trouble:
                    _LOG.warning("the page shows old data: %s", error)
                self._trouble = str(error)
            finally:
                self._looked = time.monotonic()

    def _document(
        self, hosts: tuple[HostNow, ...], alerts: tuple[AlertNow, ...] | None
    ) -> dict[str, Any]:
        document: dict[str, Any] = {
            "time": round(self._wall(), 3),
            "source": self._source.kind,
            "hosts": plain(hosts),
        }
        if alerts is not None:
            document["alerts"] = plain(alerts)
        if self._trouble is not None:
            document["trouble"] = self._trouble
        if self.looks:
            document["look_cpu_seconds"] = round(self.cost_seconds / self.looks, 4)
        return document


def _timed(look: Callable[[], Picture]) -> tuple[Picture, float]:
    started = time.thread_time()
    return look(), time.thread_time() - started


def _snoozed(picture: Picture, snoozes: Sequence[Snooze]) -> Picture:
    """The picture with the snoozes that hold for each alert; the longest is told."""
    if not snoozes:
        return picture
    alerts = []
    for alert in picture.alerts:
        until = [
            snooze.until
            for snooze in snoozes
            if fnmatchcase(alert.rule, snooze.rule) and fnmatchcase(alert.host, snooze.host)
        ]
        alerts.append(replace(alert, snoozed_until=max(until)) if until else alert)
    return replace(picture, alerts=tuple(alerts))
