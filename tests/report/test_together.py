"""What is said of the servers together, on the page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.money import Payback
from advisor.prices import Range
from advisor.profiles import Profiles
from advisor.report import markdown
from advisor.report.html import pages
from advisor.report.language import Language
from advisor.report.report import Report
from advisor.report.sections import together
from tests.pooling.test_pooling import DAY, NIGHT, assessed
from tests.staged.frames import Made


def report(*levels: tuple[float, ...]) -> Report:
    """A fleet of small chatbots with these levels of work."""
    servers = [
        assessed(f"chat-{i}", Made(cards=1, levels=level, cache=0.2))
        for i, level in enumerate(levels)
    ]
    return Report.of(servers, Profiles.load(), made=0.0, version="test")


def test_servers_that_work_in_turns_are_told_together() -> None:
    told = together.build(report(DAY, NIGHT, DAY, NIGHT))
    assert told is not None
    assert [pool.free_gpus for pool in told.pools] == [1]
    assert told.inference is not None


@pytest.mark.parametrize("language", ["en", "es"])
def test_the_page_names_what_would_be_free(language: str) -> None:
    told = report(DAY, NIGHT, DAY, NIGHT)
    page = pages(told, Language.load(language))["report.html"]
    kept = {"en": "on 3 of 4 GPUs", "es": "en 3 de 4 GPU"}
    assert kept[language] in page.replace("\u00a0", " ")
    assert kept[language] in markdown.text(told, Language.load(language))


def test_a_single_server_has_a_section_only_where_prices_were_given() -> None:
    alone = report(DAY)
    assert together.build(alone) is None
    payback = Payback(Range(9.0, 14.0), 1.0, "hourly", Range(0.0, 0.0))
    (server,) = alone.servers
    priced = replace(server.assessment, payback=payback)
    told = together.build(Report.of([priced], alone.profiles, made=0.0, version="test"))
    assert told is not None
    assert "9 to 14 months" in str(told.paid[0].sentence)
