"""The state band: no time is lost in it, and none is made up."""

from datetime import datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from advisor.assessment import GpuTimeline, Period
from advisor.report.band import areas, axis, shares
from telemetry.states import State, WindowState
from telemetry.window import Frame

START = 1_772_409_600


def line(windows: list[tuple[int, int, State]]) -> GpuTimeline:
    frame = Frame(("gpu", "a"), [w[0] for w in windows], [w[1] for w in windows])
    return GpuTimeline(frame, [WindowState(w[2], 1.0) for w in windows], [])


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from(State)), max_size=60),
    st.integers(1, 40 * 86_400 // 300),
)
def test_every_second_is_drawn_once(seen: list[tuple[bool, State]], windows: int) -> None:
    period = Period(START, START + windows * 300)
    timeline = line([(START + 300 * i, 300, s) for i, (there, s) in enumerate(seen) if there])
    time = axis(period)
    columns = shares(timeline, time)
    assert all(abs(sum(column.values()) - 1) < 0.001 for column in columns)
    length = [min(time.step, period.until - START - i * time.step) for i in range(len(columns))]
    for state in State:
        if state is not State.UNKNOWN:
            drawn = sum(c.get(state, 0.0) * n for c, n in zip(columns, length, strict=True))
            was = sum(
                300 for i, (there, s) in enumerate(seen) if there and s is state and i < windows
            )
            assert abs(drawn - was) <= 0.0001 * sum(length)


def test_a_gap_is_unknown() -> None:
    period = Period(START, START + 7 * 86_400)
    (first, *_, last) = shares(line([(START, 300, State.BUSY)]), axis(period))
    assert first == {State.BUSY: 0.0833, State.UNKNOWN: 0.9167}
    assert last == {State.UNKNOWN: 1.0}


def test_a_short_state_is_seen_among_a_long_one() -> None:
    windows = [(START + 300 * i, 300, State.BUSY) for i in range(2016)]
    windows[1000] = (START + 300 * 1000, 300, State.STUCK)
    drawn = areas(line(windows), axis(Period(START, START + 7 * 86_400)))
    assert {area.state for area in drawn} == {State.BUSY, State.STUCK}


def test_a_steady_week_is_one_shape() -> None:
    windows = [(START + 300 * i, 300, State.BUSY) for i in range(2016)]
    (area,) = areas(line(windows), axis(Period(START, START + 7 * 86_400)))
    assert area.path == "M0 0h1000v24H0z"


def test_the_axis_marks_midnights_or_round_hours() -> None:
    week = axis(Period(START + 3600, START + 7 * 86_400))
    assert week.days
    assert all(tick.time % 86_400 == 0 for tick in week.ticks)
    day = axis(Period(START + 100, START + 100 + 86_400))
    assert not day.days
    assert 3 <= len(day.ticks) <= 8
    assert all(tick.time % 3600 == 0 for tick in day.ticks)
    minute = axis(Period(START, START + 60))
    assert len(minute.ticks) <= 8


def test_marks_are_midnights_where_the_clock_is_moved_within_the_week() -> None:
    madrid = ZoneInfo("Europe/Madrid")  # summer time began on Sun 29 Mar 2026 at 02:00
    since = int(datetime(2026, 3, 26, 10, tzinfo=madrid).timestamp())
    marks = axis(Period(since, since + 7 * 86_400), madrid).ticks
    local = [datetime.fromtimestamp(mark.time, madrid) for mark in marks]
    assert [(m.day, m.hour) for m in local] == [
        (27, 0), (28, 0), (29, 0), (30, 0), (31, 0), (1, 0), (2, 0),
    ]  # fmt: skip
