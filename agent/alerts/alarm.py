"""The alert rules at work in the daemon: windows in, events out, a memory over restarts."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

from agent.alerts.alerts import Alerts
from agent.alerts.rulebook import Rulebook
from agent.watch import Watch
from telemetry.event import Event
from telemetry.inventory import Inventory
from telemetry.window import Window

_LOG = logging.getLogger(__name__)

MEMORY = "alerts"
"""The name of its memory in the store."""
_REMEMBER_EVERY = 60.0
"""Seconds between two memories while nothing begins or ends."""


class Alarm:
    """One host's alerts. A fault of ours in it costs alerts, never a window."""

    def __init__(self, book: Rulebook, host: str, *, expected_gpus: int | None = None) -> None:
        self._watch = Watch(expected_gpus=expected_gpus)
        self._alerts = Alerts(book, host)
        self._remembered: float | None = None
        self._fault: str | None = None

    def see(
        self, windows: Iterable[Window], inventory: Inventory | None, *, released: bool
    ) -> list[Event]:
        """The transitions that these windows bring; their rows get the metrics found here."""
        events: list[Event] = []
        self._watch.released = released
        if inventory is not None:
            self._watch.inventory = inventory
        try:
            for window in windows:
                seen = self._watch.look(window)
                events += self._alerts.step(window.tier, window.start, window.end, seen)
        except Exception as error:  # noqa: BLE001 - see the class
            text = f"{type(error).__name__}: {error}"
            if text != self._fault:
                _LOG.error("alert rules failed: %s", text)
            _LOG.debug("the fault", exc_info=True)
            self._fault = text
        for event in events:
            _LOG.warning("alert %s: %s", "raised" if event.raised else "over", event.text)
        return events

    def memory(self, now: float) -> str | None:
        """What is to be kept beside the events of this moment; None where nothing has to be."""
        late = self._remembered is None or not 0 <= now - self._remembered < _REMEMBER_EVERY
        if not self._alerts.changed and not late:
            return None
        self._remembered = now
        parts = {"alerts": self._alerts.memory(), "watch": self._watch.memory()}
        return json.dumps(parts, separators=(",", ":"))

    def restore(self, memory: str | None, now: float) -> None:
        """Takes up the memory of an earlier process."""
        if memory is None:
            return
        try:
            parts = json.loads(memory)
            self._alerts.restore(parts.get("alerts"))
            self._watch.restore(parts.get("watch"), now)
        except (ValueError, AttributeError):
            _LOG.warning("what alerts remembered cannot be read; they begin anew")


__all__ = ["MEMORY", "Alarm"]
