"""What pages name in passing is there: commands with their options, test files, drop-ins."""

import argparse
import re
from pathlib import Path

import pytest

import advisor.cli
import agent.cli
from tests.docs.commands import ROOT, commands
from tests.docs.test_pages import PAGES

PARSERS = {"talla-agent": agent.cli.parser(), "talla-advisor": advisor.cli.parser()}
COMMAND = re.compile(r"^(?:sudo (?:-u \S+ )?)?(?:\.venv/bin/)?(talla-agent|talla-advisor) (.*)")
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"`((?:tests|agent|advisor|telemetry|systemd|demo|docs)/[\w./-]+\.\w+)`")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def spans(page: Path) -> list[str]:
    """What stands in code: in lines, and in blocks of commands."""
    text = page.read_text("utf-8")
    return [*SPAN.findall(text), *commands(text)]


def unknown(program: str, words: list[str]) -> str | None:
    """The first word that a program does not know."""
    parser = PARSERS[program]
    [subcommands] = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    for word in words:
        if not word.startswith("-") and parser is PARSERS[program]:
            if word not in subcommands.choices:
                return word
            parser = subcommands.choices[word]
        elif word.startswith("--") and word not in parser._option_string_actions:
            return word
    return None


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_command_named_in_passing_is_one(page: Path) -> None:
    wrong = []
    for span in spans(page):
        for program, rest in COMMAND.findall(span):
            words = [w.split("=")[0] for w in rest.split() if re.match(r"-{0,2}[a-z][a-z-]*\b", w)]
            found = unknown(program, words)
            wrong += [f"{program} {rest}: {found}"] if found else []
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_file_named_in_passing_is_there(page: Path) -> None:
    named = PATH.findall(page.read_text("utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("option", sorted((ROOT / "systemd/options").iterdir()), ids=name)
def test_a_drop_in_is_switched_on_as_the_page_of_installation_does(option: Path) -> None:
    page = commands((ROOT / "docs/install.md").read_text("utf-8"))
    typed = {command.replace("sudo ", "") for command in page}
    lines = re.findall(r"^#(?: On:)?  +((?:install|systemctl) .*)$", option.read_text(), re.M)
    steps = [step for line in lines for step in line.split(" && ") if "/dev/stdin" not in step]
    assert len(steps) == 3
    assert set(steps) <= typed
