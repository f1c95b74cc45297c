"""The weekly report: when, once, made up, told; and the calendar below it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.service.config import DAYS
from advisor.service.reports import ReportFailed, report_message
from advisor.service.schedule import newest_due
from tests.service.bench import Bench, no_report
from tests.service.servers import smtp_server, web_server
from tests.service.test_delivery import mail, webhook

DAY = 86_400


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("now", "zone", "due"),
    [
        ("2026-03-04T12:00+00:00", "UTC", "2026-03-02T07:00+00:00"),
        ("2026-03-02T06:59+00:00", "UTC", "2026-02-23T07:00+00:00"),
        ("2026-03-02T07:00+00:00", "UTC", "2026-03-02T07:00+00:00"),
        ("2026-03-30T05:30+00:00", "Europe/Madrid", "2026-03-30T07:00+02:00"),  # since Sunday
        ("2026-03-30T04:30+00:00", "Europe/Madrid", "2026-03-23T07:00+01:00"),
        ("2026-03-02T00:00+00:00", "Asia/Tokyo", "2026-03-02T07:00+09:00"),
    ],
)
def test_a_week_s_time_in_its_zone(now: str, zone: str, due: str) -> None:
    assert newest_due(at(now), 7, zone, "mon") == at(due)


@given(
    st.integers(1_600_000_000, 1_900_000_000),
    st.integers(0, 23),
    st.sampled_from(["UTC", "Europe/Madrid", "America/St_Johns", "Australia/Lord_Howe"]),
    st.one_of(st.none(), st.sampled_from(DAYS)),
)
def test_the_newest_due_time_is_past_and_close(
    now: int, hour: int, zone: str, day: str | None
) -> None:
    due = newest_due(float(now), hour, zone, day)
    length = (1 if day is None else 7) * DAY
    assert now - length - 2 * 3600 <= due <= now
    local = datetime.fromtimestamp(due, ZoneInfo(zone))
    assert local.minute == 0 or zone == "Australia/Lord_Howe"
    assert day is None or local.weekday() == DAYS.index(day)


@pytest.fixture
def benches() -> Iterator[list[Bench]]:
    made: list[Bench] = []
    yield made
    for bench in made:
        bench.close()


def reports(bench: Bench) -> list[str]:
    return sorted(p.name for p in (bench.folder / "reports").glob("*"))


def test_one_a_week_and_none_for_the_time_before(tmp_path: Path, benches: list[Bench]) -> None:
    bench = Bench(tmp_path)  # Sunday
    benches.append(bench)
    for _ in range(21 * 24):
        bench.step(3600)
    assert reports(bench) == ["2026-03-02", "2026-03-09", "2026-03-16"]


def test_missed_ones_are_made_up_once(tmp_path: Path, benches: list[Bench]) -> None:
    bench = Bench(tmp_path)
    benches.append(bench)
    bench.service.stop()
    bench.clock.advance(24 * DAY)  # three Mondays
    bench.service = bench.start()
    for _ in range(5):
        bench.step(60)
    assert reports(bench) == ["2026-03-23"]


def test_one_that_fails_is_tried_again_and_leaves_no_half(
    tmp_path: Path, benches: list[Bench]
) -> None:
    attempts = itertools.count(1)

    def fail(folder: Path, due: float) -> None:
        (folder / "half").touch()
        if next(attempts) < 4:
            raise ReportFailed("no memory")
        no_report(folder, due)

    bench = Bench(tmp_path, make_report=fail)
    benches.append(bench)
    bench.step(2 * DAY)
    assert [p for p in reports(bench) if not p.startswith(".")] == []
    for _ in range(20):
        bench.step(60)
    assert reports(bench) == ["2026-03-02"]
    assert next(attempts) == 5


def test_channels_that_want_it_get_it_once(tmp_path: Path, benches: list[Bench]) -> None:
    with web_server() as hook, smtp_server(troubles=["refuse", "refuse"]) as post:
        bench = Bench(
            tmp_path,
            webhook(hook.port),
            webhook(hook.port, "hook2", reports=True),
            mail(post.port, reports=True),
        )
        benches.append(bench)
        bench.step(2 * DAY)
        for _ in range(4):
            bench.step(60)
            bench.restart()
    assert [body["title"] for body in hook.bodies] == ["Talla: right-sizing report of 2026-03-02"]
    (post_mail,) = post.bodies
    assert "The report until 1772434800" in post_mail.get_body(("plain",)).get_content()


def test_old_ones_are_dropped(tmp_path: Path, benches: list[Bench]) -> None:
    bench = Bench(tmp_path)
    benches.append(bench)
    object.__setattr__(bench.settings.report, "keep", 2)
    for _ in range(4 * 7):
        bench.step(DAY)
    assert reports(bench) == ["2026-03-16", "2026-03-23"]


def test_a_mail_page_and_its_pictures_are_used_where_the_report_has_them(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("# All is well\n")
    (tmp_path / "mail.html").write_text('<img src="cid:week">')
    (tmp_path / "week.png").write_bytes(b"\x89PNG")
    (tmp_path / "report.html").write_text("<p>all</p>")
    (tmp_path / "report-server-001-gpu01.html").write_text("<p>one</p>")
    message = report_message(tmp_path)
    assert message.text == "# All is well\n"
    assert message.images == {"week": b"\x89PNG"}
    assert [file.name for file in message.files] == ["report.html"]


def test_state_forgets_what_is_old_but_not_what_stands(
    tmp_path: Path, benches: list[Bench]
) -> None:
    bench = Bench(tmp_path)
    benches.append(bench)
    bench.alert("gpu_stuck")
    bench.alert("gpu_lost")
    bench.alert("gpu_lost", raised=False)
    bench.alert("gpu_lost")
    bench.step()
    bench.step(91 * DAY)
    assert [r.event.rule for r in bench.service.state.alerts_after({})] == ["gpu_stuck", "gpu_lost"]
    assert datetime.fromtimestamp(bench.clock.wall(), UTC).year == 2026
