"""The report as Markdown."""

from dataclasses import replace

import pytest

from advisor.hardware_change import HardwareChange
from advisor.message import say
from advisor.report import as_json, html, markdown
from advisor.report.language import LANGUAGES, Language
from tests.report import staged


def test_it_tells_the_first_screen_and_each_server() -> None:
    report = staged.report(staged.chatbot(), staged.training())
    text = markdown.text(report, Language.load("en"))
    assert "- **1** too big: chat-01\n" in text
    assert "1. **Serve this load from 4 H100 80GB HBM3; the other 4 are free" in text
    assert "\n## train-02\n\n### Verdict\n\n**too small**: the GPUs lost 36.0 %" in text


def test_tables_stay_tables_and_names_stay_names() -> None:
    name = "a|b`c*d<i>[x](http://y)\n# e"
    for code in LANGUAGES:
        text = markdown.text(
            staged.report(staged.renamed(staged.chatbot(), name), staged.hostile()),
            Language.load(code),
        )
        assert name not in text
        assert "<script" not in text.replace("\\<", "")
        assert "\n# e" not in text
        rows = [row for row in text.splitlines() if row.startswith("|")]
        widths = [row.replace("\\|", "").count("|") for row in rows]
        lines = text.splitlines()
        rules = [i for i, line in enumerate(lines) if set(line) == set("|-:") or "|---" in line]
        assert rules
        assert all(lines[i - 2] == "" for i in rules), "a table begins after an empty line"
        head = [i for i, row in enumerate(rows) if set(row) <= set("|-: ")]
        assert all(widths[i] == widths[i - 1] == widths[i + 1] for i in head)


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_change_of_the_hardware_is_told(code: str) -> None:
    changed = HardwareChange(1_772_400_000.0, (say("RAM"), say("GPUs")))
    report = staged.report(replace(staged.chatbot(), changed=changed))
    language = Language.load(code)
    said = {"en": "Its hardware changed on", "es": "Su hardware cambió el"}[code]
    assert said in markdown.text(report, language)
    assert any(said in page for page in html.pages(report, language).values())
    (server,) = as_json.document(report)["servers"]
    assert server["hardware_changed"] == {"time": 1_772_400_000.0, "what": ["RAM", "GPUs"]}
