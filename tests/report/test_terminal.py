"""The first screen in a terminal: 80 columns, no colour where none is wanted, no control codes."""

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from advisor.assessment import Assessment
from advisor.report.language import LANGUAGES, Language
from advisor.report.terminal import first_screen
from tests.report import staged


def screen(*assessments: Assessment, lang: str = "en", terminal: bool = False) -> str:
    out = io.StringIO()
    console = (
        Console(file=out, width=80, force_terminal=True, color_system="standard")
        if terminal
        else Console(file=out, width=80)
    )
    first_screen(staged.report(*assessments), Language.load(lang), console)
    return out.getvalue().replace("\u00a0", " ")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_it_fits_80_columns_and_loses_nothing(lang: str) -> None:
    text = screen(staged.chatbot(), staged.training(), staged.hostile(), staged.gaps(), lang=lang)
    assert max(map(cell_len, text.splitlines())) <= 80
    assert "…" not in text
    assert "1 ▲" in text
    assert "672 h" in text


def test_it_says_what_to_do_and_how_sure_that_is() -> None:
    text = " ".join(screen(staged.chatbot(), staged.training()).split())
    assert "1 ▲ too big 1 ▼ too small 0 ✓ fits 0 ○ idle 0 ? not known" in text
    first, second = text.index("1. Serve this load from 4"), text.index("2. Put the data")
    assert first < second
    assert "frees 672 h of GPU a week · how sure: 75 %, measured" in text[first:second]


def test_colours_are_for_terminals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert re.search(r"\x1b\[[\d;]*3\dm", screen(staged.chatbot(), terminal=True))
    assert "\x1b" not in screen(staged.chatbot())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[\d;]*3\dm", screen(staged.chatbot(), terminal=True))


def test_names_cannot_command_the_terminal_or_the_markup() -> None:
    name = "\x1b[2J\x1b]0;owned\x07[bold red]x[/]"
    text = screen(staged.renamed(staged.chatbot(), name))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[boldred]x[/]" in "".join(text.split())


def test_without_data_it_says_so() -> None:
    assert "No server" not in screen(staged.chatbot())
    assert "No server was recorded in this period." in " ".join(screen().split())
