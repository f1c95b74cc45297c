"""Whole reports, word for word, in both languages: tests/golden/report/NAME.LANGUAGE.SUFFIX.

`txt` is the first screen, `md` Markdown, `html` the page less its style and its pictures (those
are matplotlib's and change with it), `mail` the page for mail programs.

Their findings are written here, so that a change of sizing leaves them alone. After a change that
is meant, `python -m tests.report.test_golden` writes them anew; read the difference.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from advisor.finding import Basis, Dimension, Evidence, Finding, Verdict
from advisor.message import Amount, say
from advisor.report import html, mail, markdown
from advisor.report.language import LANGUAGES, Language
from advisor.report.report import Report
from advisor.report.terminal import first_screen
from tests.report import staged

FOLDER = Path(__file__).parents[1] / "golden" / "report"


def _fleet() -> Report:
    fits = "at its peak the work fits on {enough} of {have} GPUs, with headroom"
    too_many = Finding(
        "chat-01",
        "server",
        Dimension.GPU_COUNT,
        Verdict.OVER,
        say(fits, enough=4, have=8),
        0.85,
        1.0,
        Basis.MEASURED,
        rule="R19",
        rules=("R19", "R09"),
        evidence=(Evidence("gpus needed", "by memory", 4.0),),
        recommendation=say(
            "Serve this load from {enough} {card}; the other {free} are free for other work.",
            enough=4,
            card="H100 80GB HBM3",
            free=4,
        ),
        saving=say("frees {hours} GPU-hours a week", hours=Amount(672.0, "count")),
        gpu_hours_per_week=672.0,
    )
    waits = Finding(
        "train-02",
        "server",
        Dimension.STORAGE,
        Verdict.UNDER,
        say(
            "the GPUs lost {lost} of their jobs' time waiting for {what}",
            lost=Amount(0.36, "ratio"),
            what=say("network storage"),
        ),
        0.85,
        1.0,
        Basis.MEASURED,
        rule="R34",
        rules=("R34",),
        recommendation=say("Keep the data sets and checkpoints in use on local NVMe."),
        cause="network_storage",
        lost_ratio=0.36,
    )
    no_feed = Finding(
        "train-02",
        "server",
        Dimension.POWER,
        Verdict.ABSTAIN,
        say(
            "the power feed is not known;"
            " give power_feed_watts in the configuration's [server] section"
        ),
        0.0,
        1.0,
    )
    return staged.report(
        replace(staged.chatbot(), findings=(_overall(too_many), too_many)),
        replace(staged.training(), findings=(_overall(waits), waits, no_feed)),
    )


def _overall(finding: Finding) -> Finding:
    return replace(finding, dimension=Dimension.OVERALL)


def written(report: Report, code: str) -> dict[str, str]:
    """The texts of a report by suffix."""
    language = Language.load(code)
    screen = io.StringIO()
    first_screen(report, language, Console(file=screen, width=80, color_system=None))
    lines = [line.rstrip() for line in screen.getvalue().splitlines()]
    (page,) = html.pages(report, language).values()
    mailed = mail.files(report, language)["mail.html"]
    assert isinstance(mailed, str)
    return {
        "txt": "\n".join(lines) + "\n",
        "md": markdown.text(report, language),
        "html": _lined(page),
        "mail.html": _lined(mailed),
    }


def _lined(page: str) -> str:
    """A page without style and drawings, an element a line, so that a difference can be read."""
    page = re.sub(r"<style>.*?</style>", "<style/>", page, flags=re.S)
    page = re.sub(r'(<svg class="chart"[^>]*>).*?</svg>', r"\1</svg>", page, flags=re.S)
    return re.sub(r">\s*<", ">\n<", page)


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_report_of_a_fleet_reads_as_it_did(code: str) -> None:
    for suffix, text in written(_fleet(), code).items():
        assert text == (FOLDER / f"fleet.{code}.{suffix}").read_text("utf-8")


if __name__ == "__main__":
    for each in LANGUAGES:
        for ending, content in written(_fleet(), each).items():
            (FOLDER / f"fleet.{each}.{ending}").write_text(content, "utf-8")
