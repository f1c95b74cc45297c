"""A store as an agent would fill it, as fast as a test wants, and servers by the hundred."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from telemetry.aggregate import Aggregator
from telemetry.event import Event
from telemetry.signals import Signals
from telemetry.simulation import Simulation, history, load_scenario
from telemetry.store import Store
from telemetry.window import Key, Sample, Window

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script> ñ\u202e日本 & {{7*7}}'
"""What a process, a user or a host may call itself."""


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
        self.scenario = (
            read if host is None else replace(read, server=replace(read.server, host=host))
        )
        now = int(time.time()) - behind
        end = now - now % 300
        start = end - round(hours * 3600)
        self.store = Store(path)
        self._origin = start - 2 * 86_400
        inventory = self.scenario.inventory()
        self.store.append(
            history(self.scenario, start, hours / 24),
            inventories=[(float(start), inventory.host, inventory.to_json())],
        )
        self._simulation = Simulation(self.scenario, start)
        self._aggregator = Aggregator(self.scenario.server.host, Signals.load())
        self.at = end

    @property
    def host(self) -> str:
        return self.scenario.server.host

    def advance(self, until: float | None = None, seconds: int | None = None) -> None:
        """Samples up to a time (now, if none is given) or for some seconds."""
        end = self.at + seconds if seconds is not None else int(until or time.time())
        while self.at < end:
            sample = self._simulation.sample(self.at)
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
