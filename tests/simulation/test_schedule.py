"""Schedules: days, weekdays, hours, spans over midnight, and runs."""

from datetime import UTC, datetime

import pytest

from telemetry.simulation.schedule import parse_schedule

# A Wednesday.
ORIGIN = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp())


def at(day: int, hour: int, minute: int = 0) -> int:
    return int(datetime(2025, 1, day, hour, minute, tzinfo=UTC).timestamp())


def test_hours_open_and_close_to_the_second() -> None:
    schedule = parse_schedule({"hours": "08:00-20:30"})
    assert schedule.run(at(2, 8) - 1, ORIGIN) is None
    assert schedule.run(at(2, 8), ORIGIN) == at(2, 8)
    assert schedule.run(at(2, 20, 30) - 1, ORIGIN) == at(2, 8)
    assert schedule.run(at(2, 20, 30), ORIGIN) is None


def test_a_span_over_midnight_belongs_to_the_day_on_which_it_opens() -> None:
    schedule = parse_schedule({"hours": "22:00-06:00", "weekdays": "fri"})
    assert schedule.run(at(4, 3), ORIGIN) == at(3, 22)  # Saturday morning, opened on Friday
    assert schedule.run(at(3, 3), ORIGIN) is None
    assert schedule.run(at(4, 23), ORIGIN) is None


def test_weekdays_go_round_the_week() -> None:
    schedule = parse_schedule({"weekdays": "sat-mon,wed"})
    days = [d for d in range(1, 8) if schedule.run(at(d, 12), ORIGIN) is not None]
    assert days == [1, 4, 5, 6]  # Wednesday, Saturday, Sunday, Monday


def test_days_count_from_the_beginning_of_the_history() -> None:
    schedule = parse_schedule({"from_day": 1, "to_day": 3})
    days = [d for d in range(1, 8) if schedule.run(at(d, 12), ORIGIN) is not None]
    assert days == [2, 3]


def test_days_without_a_break_are_one_run() -> None:
    schedule = parse_schedule({"weekdays": "wed-fri"})
    assert {schedule.run(at(d, h), ORIGIN) for d in (1, 2, 3) for h in (0, 23)} == {at(1, 0)}
    assert schedule.run(at(8, 5), ORIGIN) == at(8, 0)
    assert parse_schedule("always").run(at(9, 1), ORIGIN) == ORIGIN
    assert parse_schedule("never").run(at(9, 1), ORIGIN) is None


@pytest.mark.parametrize(
    "value",
    [
        "sometimes",
        {},
        {"hours": "8-20"},
        {"hours": "08:01-20:00"},
        {"hours": "08:00-08:00"},
        {"hours": "08:00-25:00"},
        {"weekdays": "monday"},
        {"from_day": "1"},
        {"day": 1},
    ],
)
def test_a_schedule_says_what_it_expects(value: object) -> None:
    with pytest.raises(ValueError, match="HH:MM-HH:MM"):
        parse_schedule(value)
