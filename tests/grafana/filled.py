"""A real InfluxDB as two agents fill it: simulated servers, real daemon, store and shipper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent.__main__ import _shipper
from agent.config.settings import Settings
from agent.daemon import Daemon
from agent.keeper import Keeper
from agent.notify import Notifier
from agent.shipping.shipper import Shipper
from agent.simulated import SimulatedSource, read_scenario
from agent.state_texts import StateTexts
from telemetry.clock import ManualClock
from telemetry.event import Event, Severity
from telemetry.store import Store, StoreReader
from telemetry.window import Key, Window
from tests.servers.influxdb import InfluxDB, V2Front

START = 1_736_157_600
"""Monday 2025-01-06T10:00:00Z, a multiple of 300."""
SECONDS = 900
SCENARIOS = ("mixed", "training")


@dataclass(frozen=True)
class Filled:
    """The database, and what the stores hold that were shipped to it."""

    influxdb: InfluxDB
    database: str
    windows: tuple[Window, ...]
    events: tuple[Event, ...]
    states: Mapping[tuple[str, int, int], Mapping[Key, Mapping[str, str]]]
    """By host, tier and start: the texts that the agent ships beside the row's own."""

    @property
    def hosts(self) -> list[str]:
        return sorted({window.host for window in self.windows})


def fill(folder: Path, influxdb: InfluxDB, front: V2Front, database: str) -> Filled:
    """Runs the agents for a quarter of an hour of their clock, and ships what they kept."""
    windows: list[Window] = []
    events: list[Event] = []
    for name in SCENARIOS:
        path = folder / f"{name}.db"
        clock = ManualClock(START - 0.5)
        states = StateTexts()
        settings = _settings(path, folder, front, database)
        shipper = _shipper(settings, clock, states)  # type: ignore[arg-type]
        _sample(name, path, clock, shipper, states)
        while shipper.step() < 1.0:
            pass
        assert shipper.trouble is None
        with StoreReader(path) as store:
            windows += [window for _, window in store.windows_after(0, 100_000)]
            events += [event for _, event in store.events()]
    tell = StateTexts()
    texts = {(w.host, w.tier, w.start): tell(w) for w in windows}
    return Filled(influxdb, database, tuple(windows), tuple(events), texts)


def _sample(
    name: str, path: Path, clock: ManualClock, shipper: Shipper, states: StateTexts
) -> None:
    source = SimulatedSource(read_scenario(name), name, START - 2 * 86_400 - 36_000)
    store = Store(path)
    keeper = Keeper(store, source.host, memory_windows=10)
    daemon = Daemon(
        Settings(),
        source.host,
        source,
        keeper,
        clock,
        version="1.2.3",
        notifier=Notifier({}),
        shipper=shipper,
        states=states,
    )
    end = clock.monotonic() + SECONDS
    daemon.run(lambda: clock.monotonic() >= end)
    with Store(path) as store:
        store.append(events=_alerts(source.host))


def _alerts(host: str) -> Iterable[Event]:
    for second, raised in ((300, True), (600, False)):
        yield Event(
            START + second,
            host,
            "alert",
            "Memory is held while idle",
            Severity.WARNING,
            rule="idle_held",
            raised=raised,
        )


def _settings(path: Path, folder: Path, front: V2Front, database: str) -> Settings:
    token = folder / "token"
    token.write_text(front.token)
    settings = Settings()
    return replace(
        settings,
        influx=replace(settings.influx, url=front.url, bucket=database, token_file=str(token)),
        store=replace(settings.store, path=str(path)),
    )
