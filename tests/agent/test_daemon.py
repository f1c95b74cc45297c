"""The daemon under a clock that a test steps: ticks, windows, faults, the end."""

import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.config.settings import Settings, StoreSettings
from agent.daemon import Daemon
from agent.keeper import Keeper
from agent.notify import Notifier
from telemetry.clock import ManualClock
from telemetry.event import Event
from telemetry.inventory import Inventory
from telemetry.store import Store, StoreReader
from telemetry.window import Frame
from tests.agent.sources import Steady

START = 1_700_000_100.0  # a multiple of 300


class Bench:
    """A daemon with everything that a test may want to look at."""

    def __init__(self, folder: Path, *, settings: Settings | None = None) -> None:
        self.path = folder / "agent.db"
        self.clock = ManualClock(START - 0.5)
        self.source = Steady()
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(str(folder / "notify"))
        self.manager.setblocking(False)
        self._words: list[str] = []
        self.store = Store(self.path)
        self.keeper = Keeper(self.store, "n1", memory_windows=10)
        self.daemon = Daemon(
            settings or Settings(),
            "n1",
            self.source,
            self.keeper,
            self.clock,
            version="1.2.3",
            notifier=Notifier({"NOTIFY_SOCKET": str(folder / "notify")}),
        )

    def run(self, seconds: float, each: Callable[[], None] = lambda: None) -> None:
        """Lets the daemon run for some seconds of its clock, and end."""
        end = self.clock.monotonic() + seconds

        def stop() -> bool:
            self._hear()
            each()
            return self.clock.monotonic() >= end

        self.daemon.run(stop)

    def _hear(self) -> None:
        # A datagram socket holds few words that nobody has taken.
        with contextlib.suppress(BlockingIOError):
            while True:
                self._words.append(self.manager.recv(4096).decode())

    def told(self) -> list[str]:
        """What the service manager was told since the last call."""
        self._hear()
        words, self._words = self._words, []
        return words

    def frame(self, measurement: str, *fields: str, tier: int = 10) -> Frame:
        with StoreReader(self.path) as store:
            (frame,) = store.frames(
                "n1", measurement, tier, since=0, until=1e12, fields=fields, texts=True
            )
        return frame

    def events(self) -> list[Event]:
        with StoreReader(self.path) as store:
            return [event for _, event in store.events()]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events()]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.manager.close()


def test_a_sample_a_second_on_the_second_becomes_windows_of_both_tiers(bench: Bench) -> None:
    bench.run(650)
    assert bench.source.times == list(range(int(START), int(START) + 650))
    ten = bench.frame("gpu", "utilization_ratio", "covered_seconds")
    assert ten.start == list(range(int(START), int(START) + 650, 10))
    assert set(ten.columns["covered_seconds"]) == {10.0}
    five = bench.frame("gpu", "utilization_ratio_count", "covered_seconds", tier=300)
    # The end flushes what is open, as the short window that it is.
    assert list(zip(five.start, five.seconds, strict=True)) == [
        (int(START), 300),
        (int(START) + 300, 300),
        (int(START) + 600, 50),
    ]
    assert five.columns["utilization_ratio_count"] == [300.0, 300.0, 50.0]
    assert bench.kinds() == ["agent_start", "agent_stop"]
    assert bench.source.calls == ["close"]


def test_the_agent_tells_of_itself(bench: Bench) -> None:
    bench.run(30)
    row = bench.frame(
        "agent", "missed_ticks_total", "collect_errors_total", "memory_bytes", "cpu_seconds_total"
    )
    assert row.columns["missed_ticks_total"] == [0.0] * 3
    assert row.columns["collect_errors_total"] == [3.0] * 3
    assert all(value and value > 1e6 for value in row.columns["memory_bytes"])
    assert row.texts[0] == {"version": "1.2.3", "gpu_library": "12.0"}


def test_missed_ticks_are_counted_and_not_made_up(bench: Bench) -> None:
    slept = False

    def stall() -> None:
        nonlocal slept
        if len(bench.source.times) == 15 and not slept:
            slept = True
            bench.clock.advance(4.0)  # a tick that took so long, a machine that was stopped

    bench.run(40, stall)
    assert bench.daemon.missed_ticks_total == 4
    row = bench.frame("gpu", "covered_seconds")
    assert row.columns["covered_seconds"] == [10.0, 6.0, 10.0, 10.0]


@pytest.mark.parametrize(
    ("step", "way"), [(3600.0, "forward by 3600 s"), (-3600.0, "back by 3600 s")]
)
def test_a_clock_that_is_set_is_told_and_survived(bench: Bench, step: float, way: str) -> None:
    stepped = False

    def set_clock() -> None:
        nonlocal stepped
        if len(bench.source.times) == 25 and not stepped:
            stepped = True
            bench.clock.step_wall(step)

    bench.run(60, set_clock)
    (event,) = (event for event in bench.events() if event.kind == "clock_step")
    assert way in event.text
    assert bench.daemon.missed_ticks_total == 0
    assert len(bench.source.times) in (59, 60)


def test_the_service_manager_hears_of_ready_status_and_fresh_data_alone(bench: Bench) -> None:
    looked = []

    def freeze() -> None:
        if len(bench.source.times) == 20:
            looked.append(bench.told())
            bench.source.gpu, bench.source.host = {}, {}

    bench.run(40, freeze)
    before = [word for words in looked for word in words]
    assert before[0] == "READY=1"
    assert before.count("WATCHDOG=1") == 20
    assert any(word == "STATUS=newest samples: cpu gpu 0 s ago" for word in before)
    after = bench.told()
    assert "WATCHDOG=1" not in after
    assert any("cpu gpu 11 s ago" in word for word in after)
    assert after[-1] == "STOPPING=1"
    # The age of the samples grows in the agent's own row too.
    ages = bench.frame("agent", "host_sample_age_seconds").columns["host_sample_age_seconds"]
    assert ages == [0.0, 0.0, 10.0, 20.0]


def test_each_collector_has_its_own_age(bench: Bench) -> None:
    def freeze() -> None:
        if len(bench.source.times) == 20:
            bench.source.gpu = {}

    bench.run(40, freeze)
    assert any("cpu 0 s ago, gpu 11 s ago" in word for word in bench.told())
    row = bench.frame("agent", "cpu_sample_age_seconds", "gpu_sample_age_seconds").columns
    assert row["cpu_sample_age_seconds"] == [0.0] * 4
    assert row["gpu_sample_age_seconds"] == [0.0, 0.0, 10.0, 20.0]


def test_processor_time_is_that_of_the_children_too_and_never_falls(bench: Bench) -> None:
    def children() -> None:
        # A child of 1,000 s is killed within an uninterruptible call, and reaped later.
        bench.source.children_seconds = 0.0 if 10 <= len(bench.source.times) < 20 else 1000.0

    bench.run(30, children)
    seconds = bench.frame("agent", "cpu_seconds_total").columns["cpu_seconds_total"]
    assert all(value is not None and 1000 < value < 2000 for value in seconds)
    assert seconds == sorted(seconds, key=lambda value: value or 0.0)


def test_gpus_alone_are_fresh_data_too_and_a_lost_gpu_is_no_reason_to_restart(bench: Bench) -> None:
    bench.source.gpu = {}
    bench.run(5)
    assert bench.told().count("WATCHDOG=1") == 5


def test_a_fault_of_ours_costs_a_sample_and_is_told_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        failing = 10 <= bench.clock.monotonic() - 1000.0 < 15
        bench.source.fault = RuntimeError("a bug") if failing else None

    with caplog.at_level(logging.INFO):
        bench.run(30, fail)
    assert sum("a bug" in record.getMessage() for record in caplog.records) == 1
    assert all(record.exc_info is None for record in caplog.records)
    assert bench.kinds() == ["agent_start", "agent_fault", "agent_stop"]
    assert sum(bench.frame("host", "covered_seconds").columns["covered_seconds"]) == 25.0  # type: ignore[arg-type]


def test_the_inventory_is_kept_at_once_and_when_it_changes(bench: Bench) -> None:
    def grow() -> None:
        if len(bench.source.times) == 400:
            bench.source.known = Inventory("", memory_bytes=2)

    bench.run(1000, grow)
    with StoreReader(bench.path) as store:
        kept = store.inventories_after(0, 10)
    assert [document["memory_bytes"] for *_, document in kept] == [1, 2]
    assert {host for _, _, host, _ in kept} == {"n1"}


def test_a_short_run_keeps_its_inventory_too(bench: Bench) -> None:
    bench.run(3)
    with StoreReader(bench.path) as store:
        assert store.inventory("n1") is not None


def test_what_happens_is_kept_with_the_hosts_name(bench: Bench) -> None:
    bench.source.happened = [Event(START, "", "gpu_lost", "GPU 1: lost", gpu_uuid="GPU-1")]
    bench.run(2)
    lost = next(event for event in bench.events() if event.kind == "gpu_lost")
    assert (lost.host, lost.gpu_uuid) == ("n1", "GPU-1")


def test_the_gpus_are_let_go_and_taken_back(bench: Bench) -> None:
    asked = iter([None, True, None, False])
    bench.daemon.run(lambda: len(bench.source.times) >= 8, lambda: next(asked, None))
    assert bench.source.calls == ["release", "resume", "close"]
    assert bench.kinds() == ["agent_start", "gpu_released", "gpu_resumed", "agent_stop"]


def test_a_simulated_server_is_called_so(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.source.simulated = "chatbot"
    with caplog.at_level(logging.INFO):
        bench.run(2)
    assert "SIMULATED" in caplog.text
    assert any("STATUS=SIMULATED (chatbot)" in word for word in bench.told())
    assert "SIMULATED" in bench.events()[0].text


# The store in trouble


def fill_disk(bench: Bench) -> None:
    """SQLite answers as on a full disk: the file may not grow."""
    connection = bench.store._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")


def free_disk(bench: Bench) -> None:
    bench.store._connection.execute("PRAGMA max_page_count = 1000000")


def protect_disk(bench: Bench) -> None:
    """SQLite answers as after a remount: nothing may be written."""
    bench.store._connection.execute("PRAGMA query_only = ON")


def release_disk(bench: Bench) -> None:
    bench.store._connection.execute("PRAGMA query_only = OFF")


@pytest.mark.parametrize(
    ("stop", "resume", "reason"),
    [
        (fill_disk, free_disk, "database or disk is full"),
        (protect_disk, release_disk, "readonly database"),
    ],
)
def test_a_store_that_cannot_be_written_is_told_once_and_windows_wait_in_memory(
    bench: Bench,
    caplog: pytest.LogCaptureFixture,
    stop: Callable[[Bench], None],
    resume: Callable[[Bench], None],
    reason: str,
) -> None:
    bench.source.disks = 200
    statuses = []

    def disk() -> None:
        second = len(bench.source.times)
        if second == 20:
            stop(bench)
        if second == 95:
            assert 5 <= bench.keeper.waiting <= 8
            statuses.append(bench.daemon.status())
            resume(bench)

    with caplog.at_level(logging.INFO):
        bench.run(200, disk)
    assert reason in statuses[0]
    assert "windows in memory" in statuses[0]
    errors = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(errors) == 2
    assert reason in errors[0]
    assert "windows are kept in memory" in errors[0]
    assert errors[1] == "the store is written again"
    assert bench.frame("gpu").start == list(range(int(START), int(START) + 200, 10))
    assert bench.kinds() == ["agent_start", "store_stopped", "store_resumed", "agent_stop"]


def test_memory_is_bounded_and_what_is_dropped_is_told(bench: Bench) -> None:
    def disk() -> None:
        second = len(bench.source.times)
        if second == 20:
            protect_disk(bench)
        if second == 305:
            assert bench.keeper.waiting == 10
            release_disk(bench)

    bench.run(320, disk)
    resumed = next(event for event in bench.events() if event.kind == "store_resumed")
    lost = int(resumed.text.split("; ")[1].split()[0])
    assert lost > 10
    # 32 short windows, and the long ones of 300 and 20 seconds.
    kept = len(bench.frame("gpu").start) + len(bench.frame("gpu", tier=300).start)
    assert kept == 34 - lost


# Retention


def test_old_windows_go_in_small_steps(tmp_path: Path) -> None:
    settings = Settings(store=StoreSettings(keep_10s_hours=1.0, keep_5m_days=1.0))
    bench = Bench(tmp_path, settings=settings)
    bench.run(5000)
    ten, five = bench.frame("gpu"), bench.frame("gpu", tier=300)
    newest = int(START) + 5000
    assert newest - 3600 - 70 <= ten.start[0] <= newest - 3600
    assert five.start[0] == int(START)
    bench.manager.close()
