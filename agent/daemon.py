"""The daemon: puts the parts together, and takes a sample on every second."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.alerts.alarm import MEMORY, Alarm
from agent.config.settings import Settings
from agent.keeper import Keeper, Retention
from agent.notify import Notifier
from agent.sample_ages import told_ages
from agent.source import Source
from agent.state_texts import StateTexts
from telemetry.aggregate import Aggregator
from telemetry.clock import Clock
from telemetry.event import Event, Severity
from telemetry.inventory import Inventory
from telemetry.signals import Signals
from telemetry.window import Sample, Window

if TYPE_CHECKING:  # half a megabyte that only those who ship need
    from agent.shipping.shipper import Shipper

_LOG = logging.getLogger(__name__)

AGENT_KEY = ("agent",)
HOST_KEY = ("host",)

_EARLY = 0.05  # a sleep may end this much before its second
_STEP_SECONDS = 2.0  # wall and monotonic time may drift apart so far between two ticks
_INVENTORY_EVERY = 300.0
_SELF_EVERY = 10
_SHIP_LAST_SECONDS = 1.2
_DAMAGE_SECONDS = 3600.0  # so long a store that was found damaged is told


class Daemon:
    """Samples, makes windows, keeps them. Nothing that happens to a part ends it."""

    def __init__(
        self,
        settings: Settings,
        host: str,
        source: Source,
        keeper: Keeper,
        clock: Clock,
        *,
        version: str,
        notifier: Notifier,
        shipper: Shipper | None = None,
        states: StateTexts | None = None,
        alarm: Alarm | None = None,
        signals: Signals | None = None,
    ) -> None:
        self._settings = settings
        self._host = host
        self._source = source
        self._keeper = keeper
        self._clock = clock
        self._version = version
        self._notifier = notifier
        self._shipper = shipper
        self._states = states
        self._alarm = alarm
        self._released = False
        self._ready = False
        self._aggregator = Aggregator(host, signals or Signals.load())
        self._events: list[Event] = []
        self._last: tuple[float, float] | None = None  # monotonic and wall time of the last tick
        self._fresh: dict[str, float] = {}  # measurement -> monotonic time of the newest reading
        self._inventory_at: float | None = None
        self._inventory_kept: dict[str, object] | None = None
        self._known: Inventory | None = None
        self._tick_seconds: float | None = None
        store = settings.store
        self._retention = Retention(
            store.keep_10s_hours, store.keep_5m_days, store.keep_process_days, store.max_bytes
        )
        self._fault: str | None = None
        self._memory_bytes: float | None = None
        self._cpu_total = 0.0
        self._ticks = 0
        self.missed_ticks_total = 0

    # The loop

    def run(
        self, stop: Callable[[], bool], wanted: Callable[[], bool | None] | None = None
    ) -> None:
        """Ticks on every second until `stop` is true, then keeps what is open.

        `wanted` says, once for each demand, whether to let go of the GPUs (True) or to take them
        back (False); None where nothing was asked.
        """
        self.begin()
        try:
            while not stop():
                due = self._sleep_to_next_second(stop)
                if due is None:
                    break
                if wanted is not None:
                    self._release(wanted())
                self._try(due)
        finally:
            self.end()

    def _try(self, due: int) -> None:
        """A tick that cannot end the daemon: a fault of ours costs one sample, and is told."""
        try:
            self.tick(due)
        except Exception as error:  # noqa: BLE001 - see above
            text = f"a tick failed: {type(error).__name__}: {error}"
            if text != self._fault:
                _LOG.error("%s", text)
                self._note("agent_fault", text, Severity.CRITICAL)
            _LOG.debug("the fault", exc_info=True)
            self._fault = text

    def _sleep_to_next_second(self, stop: Callable[[], bool]) -> int | None:
        """The second that is now due; None if the daemon is to end."""
        due = math.floor(self._clock.wall() + _EARLY) + 1
        while (left := due - self._clock.wall()) > _EARLY / 10 and left <= 1.0 + _EARLY:
            self._clock.sleep(left)  # a signal may end it early
            if stop():
                return None
        return math.floor(self._clock.wall() + _EARLY)

    def begin(self) -> None:
        """Says that the daemon starts."""
        simulated = self._source.simulated
        text = f"talla-agent {self._version} started"
        if simulated is not None:
            text += f", SIMULATED: nothing of this machine is read, all is scenario {simulated}"
        _LOG.info("%s: host %s", text, self._host)
        self._note("agent_start", text)
        if self._alarm is not None:
            self._alarm.restore(self._keeper.memory(MEMORY), self._clock.wall())

    def tick(self, due: int) -> None:
        """Takes the sample of the second `due`, and keeps the windows that it closes."""
        started = self._clock.monotonic()
        late = min(1.0, max(0.0, self._clock.wall() - due))
        self._compare_clocks(started)
        sample = self._source.sample(started, due)
        self._ticks += 1
        self._look_at_freshness(sample, started)
        self._add_self(sample, started)
        windows = self._aggregator.add(sample)
        self._events += [self._ours(event) for event in self._source.events()]
        if self._shipper is not None:
            self._events += [self._ours(event) for event in self._shipper.notices()]
            self._keeper.move(self._shipper.position)
            damage = self._shipper.damage()
            if damage is not None:
                self._keeper.distrust(damage)
        if windows or self._events:
            inventory = self._inventory(started) if windows else None
            kept = self._keep(windows, inventory)
            if kept and self._shipper is not None:
                self._shipper.wake()
        if windows:
            self._keeper.prune(self._clock.wall(), started, self._retention)
        if self._fresh.get("host") == started or self._fresh.get("gpu") == started:
            if not self._ready:  # also where the first samples failed
                self._ready = True
                self._notifier.ready()
            self._notifier.watchdog()
        if windows or self._ticks == 1:
            self._notifier.status(self.status())
        self._tick_seconds = late + self._clock.monotonic() - started

    def end(self) -> None:
        """Keeps the open windows, ships what can be shipped at once, and lets go of everything."""
        self._notifier.stopping()
        self._note("agent_stop", "talla-agent stopped")
        inventory = None if self._inventory_kept else self._inventory(self._clock.monotonic())
        self._keep(self._aggregator.flush(), inventory)
        if self._shipper is not None:
            self._shipper.stop(_SHIP_LAST_SECONDS)
            self._keeper.move(self._shipper.position)
        self._source.close()
        self._keeper.close()
        self._notifier.close()
        if self._keeper.waiting:
            _LOG.error("%d windows could not be written", self._keeper.waiting)
        _LOG.info("stopped")

    def status(self) -> str:
        """One line about how it goes."""
        now = self._clock.monotonic()
        read_at = self._source.read_at().items()
        ages = told_ages({name: max(0.0, now - at) for name, at in read_at})
        text = f"newest samples: {ages}" if ages else "no sample yet"
        if self._source.simulated is not None:
            text = f"SIMULATED ({self._source.simulated}); {text}"
        if self._keeper.trouble is not None:
            text += f"; store: {self._keeper.trouble}, {self._keeper.waiting} windows in memory"
        if self._shipper is not None:
            if self._shipper.trouble is not None:
                text += f"; not shipping: {self._shipper.trouble}"
            text += f"; {self._shipper.backlog_windows} windows to ship"
        return text

    # Parts of a tick

    def _compare_clocks(self, now: float) -> None:
        """Counts the ticks that were missed, and notes a wall clock that was set."""
        wall = self._clock.wall()
        if self._last is not None:
            elapsed = now - self._last[0]
            self.missed_ticks_total += max(0, round(elapsed) - 1)
            step = wall - self._last[1] - elapsed
            if abs(step) > _STEP_SECONDS:
                way = "forward" if step > 0 else "back"
                text = f"the clock was set {way} by {abs(step):.0f} s (or the machine slept)"
                self._note("clock_step", text, Severity.WARNING)
                _LOG.warning("%s", text)
        self._last = now, wall

    def _look_at_freshness(self, sample: Sample, now: float) -> None:
        for measurement in ("gpu", "host"):
            if any(values for key, values in sample.rows.items() if key[0] == measurement):
                self._fresh[measurement] = now

    def _add_self(self, sample: Sample, now: float) -> None:
        """The agent's own row."""
        if self._ticks % _SELF_EVERY == 1:
            self._memory_bytes = _resident_bytes()
            self._cpu_total = self._cpu_seconds()
        row = {
            "missed_ticks_total": float(self.missed_ticks_total),
            "collect_errors_total": float(self._source.errors_total()),
            "cpu_seconds_total": self._cpu_total,
        }
        if self._tick_seconds is not None:
            row["tick_seconds"] = self._tick_seconds
        for name, at in (*self._source.read_at().items(), *self._fresh.items()):
            row[f"{name}_sample_age_seconds"] = max(0.0, now - at)
        row["unwritten_windows"] = float(self._keeper.waiting)
        damaged = self._keeper.damaged_at
        recent = damaged is not None and 0 <= self._clock.wall() - damaged < _DAMAGE_SECONDS
        row["store_damaged"] = 1.0 if recent else 0.0
        if self._shipper is not None:
            row["backlog_windows"] = float(self._shipper.backlog_windows)
            row["rejected_lines_total"] = float(self._shipper.rejected_lines_total)
        if self._memory_bytes is not None:
            row["memory_bytes"] = self._memory_bytes
        sample.rows[AGENT_KEY] = row
        texts = sample.texts.setdefault(AGENT_KEY, {})
        texts["version"] = self._version
        library = self._source.gpu_library()
        if library is not None:
            texts["gpu_library"] = library

    def _cpu_seconds(self) -> float:
        """Processor time of the daemon and its children. It never falls: a child that was killed
        in an uninterruptible call is missing until it is reaped."""
        return max(self._cpu_total, time.process_time() + self._source.cpu_seconds())

    def _inventory(self, now: float) -> dict[str, object] | None:
        """The inventory if it is time to look, and if it changed (a link's best speed, say)."""
        if self._inventory_at is not None and now - self._inventory_at < _INVENTORY_EVERY:
            return None
        self._inventory_at = now
        self._known = replace(self._source.inventory(), host=self._host)
        document = self._known.to_json()
        if document == self._inventory_kept:
            return None
        self._inventory_kept = document
        return document

    def _keep(self, windows: list[Window], inventory: dict[str, object] | None) -> bool:
        """Keeps windows that were closed, with what is told of them; whether the store has them."""
        memories = self._alert(windows)
        if self._states is not None:
            self._states.keep(windows)
        events, self._events = self._events, []
        return self._keeper.append(self._clock.wall(), windows, events, inventory, memories)

    def _alert(self, windows: list[Window]) -> dict[str, str] | None:
        """Adds what the alert rules say of the windows to the events; what they must remember."""
        if self._alarm is None or not windows:
            return None
        self._events += self._alarm.see(windows, self._known, released=self._released)
        memory = self._alarm.memory(self._clock.wall())
        return None if memory is None else {MEMORY: memory}

    def _release(self, wanted: bool | None) -> None:
        if wanted is None:
            return
        self._released = wanted
        if wanted:
            _LOG.warning("the GPUs are let go, for a driver upgrade; SIGUSR1 takes them back")
            self._source.release()
        else:
            _LOG.info("the GPUs are taken back")
            self._source.resume()
        self._note("gpu_released" if wanted else "gpu_resumed", "asked for by a signal")

    def _note(self, kind: str, text: str, severity: Severity = Severity.INFO) -> None:
        self._events.append(Event(self._clock.wall(), self._host, kind, text, severity))

    def _ours(self, event: Event) -> Event:
        return event if event.host else replace(event, host=self._host)


def _resident_bytes() -> float | None:
    try:
        with open("/proc/self/statm", "rb") as file:
            return float(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, IndexError):
        return None
