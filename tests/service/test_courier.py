"""What holds of a channel whatever happens: failures, restarts, snoozes, any order of alerts."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.channels import Message, NotDelivered
from advisor.config import Settings
from advisor.service.config import ChannelSettings, ServiceSettings
from advisor.service.notify import Courier
from advisor.state import State
from telemetry.clock import ManualClock
from telemetry.event import Event, Severity

TARGET = ChannelSettings("hook", "apprise", url="json://x/")
NOW = 1_772_323_200.0


class Recorder:
    """A channel that keeps what it confirmed, and fails when told to."""

    renew_seconds: float | None = None

    def __init__(self) -> None:
        self.failures = 0
        self.got: list[Event] = []

    def send(self, message: Message) -> None:
        if self.failures:
            self.failures -= 1
            raise NotDelivered("down")
        self.got += message.alerts


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("alert"), st.integers(0, 5)),
        st.tuples(st.just("fail"), st.integers(1, 3)),
        st.tuples(st.just("restart"), st.just(0)),
        st.tuples(st.just("wait"), st.integers(1, 2000)),
    ),
    max_size=40,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(STEPS)
def test_everything_arrives_once_and_in_order_for_a_host(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, State(Path(folder) / "advisor.db") as state:
        clock, channel = ManualClock(NOW), Recorder()
        config = Settings(service=ServiceSettings(group_seconds=0))
        courier = Courier(state, config, TARGET, clock, channel=channel)
        courier.begin()
        raised: dict[int, bool] = {}
        made: list[Event] = []
        for what, number in steps:
            if what == "alert":
                raised[number] = not raised.get(number, False)
                host = f"gpu0{number % 2}"
                event = Event(
                    clock.wall(),
                    host,
                    "alert",
                    str(len(made)),
                    Severity.CRITICAL,
                    None,
                    f"rule{number}",
                    raised[number],
                    {"subject": "host"},
                    len(made) + 1,
                )
                made.append(event)
                state.take_in("store", [event], {}, clock.wall())
            elif what == "fail":
                channel.failures = number
            elif what == "restart":
                courier = Courier(state, config, TARGET, clock, channel=channel)
                courier.begin()
            clock.advance(float(number))
            courier.step()
        channel.failures = 0
        clock.advance(3600)
        courier.step()
        got = [int(event.text) for event in channel.got]
        assert sorted(got) == list(range(len(made)))  # each once
        for host in ("gpu00", "gpu01"):
            told = [int(e.text) for e in channel.got if e.host == host]
            assert told == sorted(told)
