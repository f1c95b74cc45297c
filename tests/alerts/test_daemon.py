"""Alerts in the daemon: in the store with the windows, over restarts, with a store that fails."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agent.alerts.alarm import MEMORY, Alarm
from agent.alerts.rulebook import Rulebook
from agent.config.settings import Settings
from agent.daemon import Daemon
from agent.keeper import Keeper
from agent.notify import Notifier
from telemetry.clock import ManualClock
from telemetry.event import Event
from telemetry.store import Store, StoreReader
from tests.agent.sources import Steady

START = 1_700_000_100.0


class Bench:
    """A daemon with the shipped rules that is ended and begun anew on one clock and store."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "agent.db"
        self.clock = ManualClock(START - 0.5)
        self.source = Steady()
        self.source.gpu = {"utilization_ratio": 0.9, "power_watts": 500.0}

    def run(self, seconds: float, *, killed: bool = False) -> None:
        store = Store(self.path)
        keeper = Keeper(store, "n1", memory_windows=10)
        alarm = Alarm(Rulebook.load(), "n1")
        daemon = Daemon(
            Settings(),
            "n1",
            self.source,
            keeper,
            self.clock,
            version="1",
            notifier=Notifier({}),
            alarm=alarm,
        )
        end = self.clock.monotonic() + seconds
        if killed:
            # As after a kill: what a tick committed is there, the end was never reached.
            daemon.end = store.close  # type: ignore[method-assign]
        daemon.run(lambda: self.clock.monotonic() >= end)

    def alerts(self) -> list[tuple[str, bool]]:
        with StoreReader(self.path) as store:
            return [(e.rule or "", bool(e.raised)) for _, e in store.events() if e.kind == "alert"]

    def events(self) -> list[Event]:
        with StoreReader(self.path) as store:
            return [e for _, e in store.events() if e.kind == "alert"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("killed", [False, True])
def test_a_restart_neither_repeats_nor_forgets(bench: Bench, killed: bool) -> None:
    bench.source.gpu["throttle_thermal_ratio"] = 0.5
    bench.run(350, killed=killed)
    assert bench.alerts() == []
    bench.run(310, killed=killed)  # ten minutes in two lives
    assert bench.alerts() == [("gpu_throttled_thermal", True)]
    bench.run(310, killed=killed)
    assert bench.alerts() == [("gpu_throttled_thermal", True)]
    bench.source.gpu["throttle_thermal_ratio"] = 0.0
    bench.run(330, killed=killed)
    bench.run(330, killed=killed)
    assert bench.alerts() == [("gpu_throttled_thermal", True), ("gpu_throttled_thermal", False)]


def test_rows_have_what_rules_looked_at(bench: Bench) -> None:
    bench.run(30)
    with StoreReader(bench.path) as store:
        (frame,) = store.frames("n1", "gpu", 10, since=0, until=1e12, fields=("lost_ratio",))
        assert frame.columns["lost_ratio"] == [0.0, 0.0, 0.0]
        assert store.memory(MEMORY) is not None


def test_released_gpus_raise_nothing(bench: Bench) -> None:
    store = Store(bench.path)
    daemon = Daemon(
        Settings(),
        "n1",
        bench.source,
        Keeper(store, "n1", memory_windows=10),
        bench.clock,
        version="1",
        notifier=Notifier({}),
        alarm=Alarm(Rulebook.load(), "n1"),
    )
    wishes: dict[int, bool] = {60: True, 400: False}

    def wanted() -> bool | None:
        second = int(bench.clock.wall() - START)
        wish = wishes.pop(second, None)
        if wish is not None:
            bench.source.gpu = {} if wish else {"utilization_ratio": 0.9}
        return wish

    end = bench.clock.monotonic() + 600
    daemon.run(lambda: bench.clock.monotonic() >= end, wanted)
    assert not wishes
    assert bench.alerts() == []


def test_a_driver_that_stops_answering_is_told(bench: Bench) -> None:
    store = Store(bench.path)
    daemon = Daemon(
        Settings(),
        "n1",
        bench.source,
        Keeper(store, "n1", memory_windows=10),
        bench.clock,
        version="1",
        notifier=Notifier({}),
        alarm=Alarm(Rulebook.load(), "n1"),
    )
    end = bench.clock.monotonic() + 400

    def stop() -> bool:
        if bench.clock.monotonic() > end - 340:
            bench.source.gpu = {}
        return bench.clock.monotonic() >= end

    daemon.run(stop)
    assert bench.alerts() == [("gpu_readings_silent", True)]
    (event,) = bench.events()
    assert event.text.startswith("No GPU of n1 has been read for 2 min")


def test_a_memory_that_is_broken_is_left_and_alerts_begin_anew(bench: Bench) -> None:
    with Store(bench.path) as store:
        store.append(memories={MEMORY: "{nonsense"})
    bench.source.gpu["throttle_thermal_ratio"] = 0.5
    bench.run(610)
    assert bench.alerts() == [("gpu_throttled_thermal", True)]


def test_alerts_go_on_while_the_store_cannot_be_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from telemetry.store import StoreError

    real = Store.append

    def refuse(*args: object, **more: object) -> None:
        if START + 60 <= bench.clock.wall() < START + 600:
            raise StoreError("the disk is full")
        real(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "append", refuse)
    bench.run(900)
    assert ("store_unwritable", True) in bench.alerts()
    assert ("store_unwritable", False) in bench.alerts()


def test_a_damaged_store_is_told(bench: Bench) -> None:
    bench.run(400)
    data = bytearray(bench.path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    bench.path.write_bytes(data)
    for side in ("-wal", "-shm"):
        bench.path.with_name(bench.path.name + side).unlink(missing_ok=True)
    store = Store(bench.path, mend_at=bench.clock.wall())
    daemon = Daemon(
        Settings(),
        "n1",
        bench.source,
        Keeper(store, "n1", memory_windows=10),
        bench.clock,
        version="1",
        notifier=Notifier({}),
        alarm=Alarm(Rulebook.load(), "n1"),
    )
    # The keeper reads the machine's own clock when it opens: the test's is brought there.
    bench.clock.step_wall(time.time() - bench.clock.wall())
    end = bench.clock.monotonic() + 4000
    daemon.run(lambda: bench.clock.monotonic() >= end)
    assert bench.alerts() == [("store_damaged", True), ("store_damaged", False)]
