"""The daemon's process, which `talla-agent run` becomes (`python -m agent DESCRIPTOR`)."""

from __future__ import annotations

import logging
import select
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent.alerts.alarm import Alarm
from agent.alerts.rulebook import Rulebook
from agent.daemon import Daemon
from agent.errors import UserError
from agent.guard import guarded
from agent.keeper import Keeper
from agent.launch import Launch, receive
from agent.notify import Notifier
from agent.running import RELEASE, RESUME
from agent.state_texts import StateTexts
from telemetry import logs
from telemetry.clock import SystemClock
from telemetry.store import Store, StoreUnwritable

if TYPE_CHECKING:
    from agent.config.settings import Settings
    from agent.shipping.shipper import Shipper
    from agent.source import Source


class Signals:
    """SIGTERM and SIGINT ask for the end, SIGUSR1 for letting go of the GPUs or taking them back,
    RELEASE and RESUME (`talla-agent release`) for the one or the other.

    Handlers only set marks. `wait` is a sleep that any of the signals ends.
    """

    def __init__(self) -> None:
        self._ended = False
        self._released = False
        self._asked = False
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        signal.signal(signal.SIGINT, lambda *_: self._end())
        signal.signal(signal.SIGUSR1, lambda *_: self._release(not self._released))
        signal.signal(RELEASE, lambda *_: self._release(True))
        signal.signal(RESUME, lambda *_: self._release(False))

    def _end(self) -> None:
        self._ended = True

    def _release(self, released: bool) -> None:
        self._asked |= released != self._released
        self._released = released

    def ended(self) -> bool:
        """Whether the daemon is to end."""
        return self._ended

    def wanted(self) -> bool | None:
        """Whether to let go of the GPUs (True) or take them back, once; None: nothing new."""
        asked, self._asked = self._asked, False
        return self._released if asked else None

    def wait(self, seconds: float) -> None:
        """Sleeps, at most so long."""
        ready, _, _ = select.select([self._read], [], [], seconds)
        if ready:
            self._read.recv(64)


class _Clock(SystemClock):
    """The machine's clocks, with a sleep that a signal ends."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self._signals.wait(seconds)


def serve(launch: Launch) -> int:
    """Runs the daemon until a signal ends it.

    Raises UserError (a wrong alert rule, say) or StoreError at the start.
    """
    settings = launch.settings
    notifier = Notifier()
    signals = Signals()
    clock = _Clock(signals)
    alerts = settings.alerts
    book = Rulebook.load(alerts.rules, series=False) if alerts.enabled else None
    source, host = _source(launch, clock)
    if settings.prometheus.port is not None:
        from agent.exporter import ExportedSource

        try:
            source = ExportedSource(source, settings.prometheus.address, settings.prometheus.port)
        except UserError:
            source.close()
            raise
    path = Path(settings.store.path)
    store: Store | None = None
    try:
        store = Store(path, mend_at=clock.wall())
    except StoreUnwritable as error:
        # A full or failing disk: sampling and alerts go on, the store is tried again.
        logging.getLogger(__name__).error("%s", error)
    except BaseException:
        source.close()
        raise
    keeper = Keeper(store, host, memory_windows=settings.store.memory_windows, path=path)
    states = None if settings.influx.url is None else StateTexts()
    shipper = None if states is None else _shipper(settings, clock, states)
    expected = settings.gpu.expected
    alarm = None if book is None else Alarm(book, host, expected_gpus=expected)
    daemon = Daemon(
        settings,
        host,
        source,
        keeper,
        clock,
        version=launch.version,
        notifier=notifier,
        shipper=shipper,
        states=states,
        alarm=alarm,
    )
    if shipper is not None:
        shipper.start()
    daemon.run(signals.ended, signals.wanted)
    return 0


def _source(launch: Launch, clock: SystemClock) -> tuple[Source, str]:
    if launch.simulate is not None:
        from agent.simulated import SimulatedSource, read_scenario

        scenario = read_scenario(launch.simulate)
        simulated = SimulatedSource(scenario, launch.simulate, int(clock.wall()))
        return simulated, simulated.host
    from agent.host.hostfs import HostFs
    from agent.inventory import host_name
    from agent.machine import MachineSource

    host = launch.settings.agent.host or host_name(HostFs())
    return MachineSource(launch.settings, host), host


def _shipper(settings: Settings, clock: SystemClock, states: StateTexts) -> Shipper:
    """The shipper to InfluxDB; what it needs is imported only here."""
    try:
        from agent.shipping.influx import Influx
    except ImportError as error:
        raise UserError(
            f"[influx] url is set, but influxdb-client cannot be imported ({error});"
            " install talla with its dependencies"
        ) from None
    from agent.shipping.quarantine import Quarantine
    from agent.shipping.shipper import Backlog, Shipper, Waits

    influx = settings.influx
    store = Path(settings.store.path)
    folder = Path(influx.quarantine) if influx.quarantine else store.with_name("quarantine")
    return Shipper(
        store,
        Influx(influx, states),
        Quarantine(folder, influx.quarantine_bytes),
        clock,
        batch_lines=influx.batch_lines,
        waits=Waits(influx.retry_seconds, influx.max_retry_seconds),
        backlog=Backlog(
            influx.backlog_hours, influx.backlog_bytes, influx.catch_up_lines_per_second
        ),
    )


def main() -> int:
    """Takes over from the launcher."""
    try:
        launch = receive(int(sys.argv[1]))
    except (IndexError, ValueError, OSError):
        print("talla-agent: the daemon is started with: talla-agent run", file=sys.stderr)
        return 2
    logs.start("debug" if launch.debug else launch.settings.agent.log_level)
    return guarded(lambda: serve(launch), debug=launch.debug)


if __name__ == "__main__":
    sys.exit(main())
