"""The week after: what changed, and what became of the advice, by what is seen."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from advisor.assessment import Assessment, Period
from advisor.finding import Dimension, Finding, Verdict
from advisor.message import Amount, say
from advisor.report import as_json, html, markdown, memory
from advisor.report.language import LANGUAGES, Language
from advisor.report.past import Outcome, followed, from_json, to_json
from advisor.report.report import Report
from advisor.report.terminal import first_screen
from advisor.state import State
from telemetry.inventory import Inventory
from tests.report import staged

EN = Language.load("en")
DAY = 86_400


def later(assessment: Assessment, days: int) -> Assessment:
    """The same told some days later."""
    told = assessment.told
    return replace(assessment, told=Period(told.since + days * DAY, told.until + days * DAY))


def found(dimension: Dimension, verdict: Verdict, *, advised: bool = True) -> Finding:
    return Finding(
        "h",
        "server",
        dimension,
        verdict,
        say("seen"),
        0.8,
        1.0,
        recommendation=say("do it with {n}", n=Amount(2.0, "GPUs")) if advised else None,
    )


def outcome(
    then: Inventory, now: Inventory, advised: Finding, found_now: Finding | None
) -> Outcome:
    server = staged.report(replace(staged.no_gpu(), inventory=then, findings=(advised,))).servers[0]
    (one,) = followed(memory.past_of(server), now, () if found_now is None else (found_now,))
    return one.outcome


EIGHT, TWO = (staged.inventory("h", cards=n) for n in (8, 2))
OVER, UNDER, RIGHT, SHORT = (
    found(Dimension.GPU_COUNT, v)
    for v in (Verdict.OVER, Verdict.UNDER, Verdict.RIGHT, Verdict.ABSTAIN)
)


@pytest.mark.parametrize(
    ("then", "now", "advised", "found_now", "expected"),
    [
        (EIGHT, TWO, OVER, RIGHT, Outcome.FOLLOWED),
        (EIGHT, TWO, OVER, OVER, Outcome.PARTLY),
        (EIGHT, TWO, OVER, UNDER, Outcome.TOO_FAR),
        (EIGHT, TWO, OVER, SHORT, Outcome.CHANGED),
        (EIGHT, TWO, OVER, None, Outcome.CHANGED),
        (EIGHT, EIGHT, OVER, OVER, Outcome.STANDS),
        (EIGHT, EIGHT, OVER, RIGHT, Outcome.GONE),
        (EIGHT, EIGHT, OVER, SHORT, Outcome.UNKNOWN),
        (TWO, EIGHT, OVER, OVER, Outcome.STANDS),  # more cards are not fewer
        (TWO, EIGHT, UNDER, RIGHT, Outcome.FOLLOWED),
        (EIGHT, TWO, UNDER, UNDER, Outcome.STANDS),
    ],
)
def test_advice_is_followed_only_where_that_is_seen(
    then: Inventory, now: Inventory, advised: Finding, found_now: Finding | None, expected: Outcome
) -> None:
    assert outcome(then, now, advised, found_now) is expected


def test_what_is_remembered_comes_back_as_it_was() -> None:
    for assessment in (staged.chatbot(), staged.training(), staged.hostile(), staged.no_gpu()):
        past = memory.past_of(staged.report(assessment).servers[0])
        assert from_json(to_json(past)) == past


@pytest.fixture
def weeks(tmp_path: Path) -> tuple[Report, Report]:
    """The chatbot's server with eight cards, and a week later with four; a trainer as it was."""
    with State(tmp_path / "advisor.db") as state:
        first = staged.report(staged.chatbot(), staged.training())
        assert memory.recall(state, first).servers[0].past is None
        memory.remember(state, first)
        served = [f for f in staged.chatbot().findings if f.dimension is not Dimension.OVERALL]
        calm = tuple(replace(f, verdict=Verdict.RIGHT, recommendation=None) for f in served)
        four = replace(
            later(staged.chatbot(), 7),
            inventory=staged.inventory("chat-01", cards=4),
            findings=(replace(calm[0], dimension=Dimension.OVERALL), *calm),
        )
        second = memory.recall(state, staged.report(four, later(staged.training(), 7)))
        memory.remember(state, second)
        return first, second


def test_a_second_week_says_what_changed(weeks: tuple[Report, Report]) -> None:
    text = markdown.text(weeks[1], EN)
    assert "- The server as a whole: too big → **fits**" in text
    assert "- GPUs: 8 × NVIDIA H100 80GB HBM3 → **4 × NVIDIA H100 80GB HBM3**" in text
    assert "- **followed** (Number of GPUs): " in text
    assert "It was 8 GPUs; it is 4 GPUs." in text
    assert "- **still stands** (Storage): " in text
    assert "Of its " in text
    assert "Since the last report" not in markdown.text(weeks[0], EN)
    told = as_json.document(weeks[1])["servers"]
    outcomes = {a["outcome"] for s in told for a in s["last_report"]["advice"]}
    assert {"followed", "stands"} <= outcomes
    assert "last_report" not in as_json.document(weeks[0])["servers"][0]
    out = io.StringIO()
    first_screen(weeks[1], EN, Console(file=out, width=80))
    assert "Since the last report" in out.getvalue()
    assert "followed, " in out.getvalue()


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_pages_tell_it_too(weeks: tuple[Report, Report], code: str) -> None:
    language = Language.load(code)
    (text,) = html.pages(weeks[1], language).values()
    assert text.count(language.text("Since the last report") + "</h") == 3
    assert language.text("followed") + "</span>" in text


def test_a_report_made_twice_in_a_day_has_no_news_of_the_first(tmp_path: Path) -> None:
    with State(tmp_path / "advisor.db") as state:
        report = staged.report(staged.chatbot())
        memory.remember(state, report)
        memory.remember(state, report)
        assert memory.recall(state, report).servers[0].past is None
        assert state.rows("SELECT count(*) FROM past_report") == [(1,)]
        week = staged.report(later(staged.chatbot(), 7))
        assert memory.recall(state, week).servers[0].past is not None


def test_what_cannot_be_read_is_no_earlier_report(tmp_path: Path) -> None:
    with State(tmp_path / "advisor.db") as state:
        memory.remember(state, staged.report(staged.chatbot()))
        with state.transaction() as db:
            db.execute("UPDATE past_report SET document = '{\"since\": 1}'")
        week = staged.report(later(staged.chatbot(), 7))
        assert memory.recall(state, week).servers[0].past is None
