"""Demand, starvation and what-if: drawn where there is something to see, from what sizing saw."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from advisor.report import html
from advisor.report.language import LANGUAGES, Language
from advisor.report.sections import charts, whatif
from tests.report import staged

EN = Language.load("en")


def pictures(text: str) -> list[str]:
    return re.findall(r'<svg class="chart".*?</svg>', text, re.S)


@pytest.mark.parametrize("code", LANGUAGES)
def test_pictures_are_small_have_words_and_take_the_pages_colours(code: str) -> None:
    report = staged.report(staged.chatbot(), staged.training())
    (text,) = html.pages(report, Language.load(code)).values()
    found = pictures(text)
    assert len(found) == 3  # demand of GPUs and of memory, and what the trainer waited for
    for picture in found:
        element = ElementTree.fromstring(picture)
        assert element.get("role") == "img"
        assert re.search(r"\d", element.get("aria-label") or "")
        assert any(child.tag == "text" for child in element.iter())
        assert not re.search(r"#[0-9a-f]{6}", picture)  # else it would not be dark in the dark
        assert "<style" not in picture
        assert "<path d=" in picture
        assert len(picture) < 12_000
    ids = re.findall(r' id="([^"]+)"', "".join(found))
    assert len(ids) == len(set(ids))
    for used in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', "".join(found)):
        assert (used[0] or used[1]) in ids


def test_the_demand_drawn_is_what_sizing_saw() -> None:
    assessment = staged.chatbot()
    server = staged.report(assessment).servers[0]
    told = charts.build(server)
    assert told is not None
    cards, memory = told.demands
    assert cards.capacity == 8
    assert cards.enough == 4  # as the finding says: 160 GB and headroom on cards of 80 GB
    assert memory.capacity == 8 * 80e9
    assert max(v for v in cards.highest if v is not None) == max(
        w.cards or 0 for w in assessment.work
    )
    assert len(cards.highest) == 168


def test_starvation_drawn_adds_up_to_the_hours_lost() -> None:
    server = staged.report(staged.training()).servers[0]
    told = charts.build(server)
    assert told is not None
    assert told.starvation is not None
    drawn = sum(map(sum, told.starvation.lost.values()))
    assert drawn == pytest.approx(server.lost)
    assert [str(label) for label, _ in told.starvation.totals] == ["network storage"]


def test_nothing_is_drawn_where_there_is_nothing_to_see() -> None:
    for assessment in (staged.finetuning(), staged.no_gpu(), staged.unseen()):
        assert charts.build(staged.report(assessment).servers[0]) is None


def test_a_gap_is_no_demand_of_zero() -> None:
    assessment = staged.chatbot()
    held = tuple(w for w in assessment.work if (w.start - staged.START) // 86_400 != 2)
    told = charts.build(staged.report(replace(assessment, work=held)).servers[0])
    assert told is not None
    assert told.demands[0].highest[48:72] == [None] * 24
    assert None not in told.demands[0].highest[:48]


def test_the_what_if_names_the_advised_option_and_why_less_would_not_do() -> None:
    told = whatif.build(staged.report(staged.chatbot()).servers[0])
    assert told is not None
    assert (told.count, told.card) == (8, staged.H100)
    same = [line for line in told.lines if line.option.rule is None]
    assert [(line.option.count, line.option.fits, line.advised) for line in same] == [
        (3, False, False),
        (4, True, True),
    ]
    assert same[1].option.frees == 4
    assert all(line.obstacles for line in told.lines if not line.option.fits)


def test_matplotlib_is_loaded_only_by_a_picture() -> None:
    code = (
        "import sys; from advisor.report.html import pages; from advisor.report.section import"
        " Sections; Sections.find(); assert 'matplotlib' not in sys.modules, 'loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
