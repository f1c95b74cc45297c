"""A page that a long proof writes tells of today's cases and rules, in their order.

Whether they came out as it says is what the proof itself is for (`make verify-alerts`).
"""

from agent.alerts.text import duration_text
from tests.alerts.cases import healthy
from tests.alerts.staged import BOOK
from tests.alerts.troubles import troubles
from tests.docs.commands import ROOT


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    page = (ROOT / "docs/alert-proof.md").read_text("utf-8")
    section = page.split(f"\n## {heading}")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_the_page_of_alerts_tells_of_each_trouble_and_how_long_its_rule_waits() -> None:
    waits = {rule.name: rule.raise_seconds for rule in BOOK.rules}
    wanted = [
        [case.name, f"`{case.rule}`", duration_text(seconds) if seconds else "one window"]
        for case in troubles()
        for seconds in [waits[str(case.rule)]]
    ]
    assert [row[:3] for row in rows("Detection")] == wanted


def test_the_page_of_alerts_tells_of_each_healthy_case() -> None:
    wanted = [[case.name, duration_text(case.seconds)] for case in healthy()]
    assert [row[:2] for row in rows("Awkward healthy work")] == wanted
