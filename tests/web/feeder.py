"""A store as an agent would fill it, as fast as a test wants, and servers by the hundred."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from telemetry.aggregate import Aggregator
from telemetry.event import Event
from telemetry.signals import Signals
from telemetry.simulation import Simulation, load_scenario
from telemetry.store import Store
from telemetry.window import Key, Sample, Window

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script> ñ\u202e日本 & {{7*7}}'
"""What a process, a user or a host may call itself."""


NOON = 1_736_251_200
"""Tuesday 2025-01-07T12:00:00Z, when every simulated server has its day's work: the time of day at
which a test runs changes nothing."""


class Feeder:
    """Writes a scenario's windows into a real store, up to any time."""

    def __init__(
        self,
        path: Path,
        scenario: str = "mixed",
        *,
        hours: float = 0.4,
        behind: int = 600,
        change: Callable[[Sample], None] | None = None,
        host: str | None = None,
    ) -> None:
        """The store holds `hours` of 5-minute windows until `behind` seconds ago, the last ten
        minutes of them in 10-second windows too. `change` works on each later sample."""
        self.path = path
        self.change = change
        read = load_scenario(scenario)
        server = read.server if host is None else replace(read.server, host=host)
        self.scenario = replace(read, server=server)
        now = int(time.time()) - behind
        end = now - now % 300
        start = end - round(hours * 12) * 300
        self._earlier = start - NOON
        self.store = Store(path)
        self._simulation = Simulation(self.scenario, NOON - 3 * 86_400)
        self._aggregator = Aggregator(server.host, Signals.load())
        inventory = self.scenario.inventory()
        windows = [self._window(begin) for begin in range(start, end - 600, 300)]
        self.store.append(
            windows, inventories=[(float(start), inventory.host, inventory.to_json())]
        )
        self.at = end - 600
        self.change, late = None, self.change
        self.advance(seconds=600)
        self.change = late

    def _window(self, start: int) -> Window:
        window = self._simulation.window(start - self._earlier)
        window.start = start
        return window

    def _sample(self, time: int) -> Sample:
        sample = self._simulation.sample(time - self._earlier)
        sample.time = float(time)
        return sample

    @property
    def host(self) -> str:
        return self.scenario.server.host

    def advance(self, until: float | None = None, seconds: int | None = None) -> None:
        """Samples up to a time (now, if none is given) or for some seconds."""
        end = self.at + seconds if seconds is not None else int(until or time.time())
        while self.at < end:
            sample = self._sample(self.at)
            if self.change is not None:
                self.change(sample)
            self.store.append(self._aggregator.add(sample))
            self.at += 1

    def events(self, events: Iterable[Event]) -> None:
        self.store.append(events=events)

    def close(self) -> None:
        self.store.close()


def renamed(window: Window, host: str, number: int, shift: int) -> Window:
    """A window of another server, later by some seconds, with GPUs of its own."""

    def own(key: Key) -> Key:
        if key[0] not in ("gpu", "gpu_process"):
            return key
        return key[0], f"{key[1][:-4]}{number:04}", *key[2:]

    rows = {own(key): row for key, row in window.rows.items()}
    return Window(host, window.tier, window.start + shift, window.seconds, rows)
