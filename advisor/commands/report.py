"""`talla-advisor report`: the first screen in the terminal, or the whole report as files."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from advisor.commands.reading import Reading, add_reading_options, open_reading

if TYPE_CHECKING:
    from advisor.report.report import Report

FORMATS = ("html", "md", "json", "mail")
LANGUAGES = ("en", "es")


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "report",
        help="the right-sizing report: first screen in the terminal, or files",
        description="Without -o and --format the first screen is printed. --format json alone"
        " prints JSON to standard output; all else is written to files whose paths are printed.",
    )
    add_reading_options(parser)
    parser.add_argument(
        "--format",
        metavar="FORMATS",
        type=_choices(FORMATS),
        help="of html, md, json and mail (a page for mail programs with PNG pictures), separated"
        " by commas (with -o alone: html,json)",
    )
    parser.add_argument(
        "--lang",
        metavar="LANGUAGES",
        type=_choices(LANGUAGES),
        help="of en and es, separated by commas (default: the configuration's language)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        type=Path,
        help="folder for the files (default, where a file is asked for: the working directory)",
    )
    parser.add_argument(
        "--state",
        metavar="FILE",
        type=Path,
        help="advisor's own database, in which reports are remembered, so that the next one tells"
        " what changed (default: that of the configuration, if it is there and may be written)",
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints or writes the report of all hosts of the stores."""
    from advisor.report import files

    with open_reading(args) as reading:
        settings = reading.settings
        languages = args.lang or (settings.language,)
        zone = ZoneInfo(settings.report.timezone)
        report = _remembered(_assessed(reading, zone), args.state, settings.service.state)
    if args.format is None and args.output is None:
        _print(report, languages, zone)
    elif args.format == ("json",) and args.output is None:
        sys.stdout.write(files.as_json_text(report))
    else:
        formats = args.format or ("html", "json")
        folder = args.output or Path()
        for path in files.write(files.rendered(report, formats, languages, zone), folder):
            print(path)
    return 0


def _assessed(reading: Reading, zone: tzinfo) -> Report:
    from advisor.assess import assess_all
    from advisor.profiles import Profiles
    from advisor.report.report import Report

    return Report.of(
        assess_all(reading), Profiles.load(), made=time.time(), version=_version(), zone=zone
    )


def _remembered(report: Report, named: Path | None, usual: str) -> Report:
    """The report with the last one before it; it is remembered itself for the next.

    A database that is named must work. The usual one is left alone where there is none, or where
    this user may not write it.
    """
    from advisor.errors import AdvisorError
    from advisor.report import memory
    from advisor.state import State

    path = named or Path(usual)
    if named is None and not os.access(path, os.W_OK):
        return report
    try:
        with State(path) as state:
            report = memory.recall(state, report)
            memory.remember(state, report)
    except AdvisorError:
        if named is not None:
            raise
    return report


def _print(report: Report, languages: Sequence[str], zone: tzinfo) -> None:
    from rich.console import Console

    from advisor.report.language import Language
    from advisor.report.terminal import first_screen

    # In a pipe there is no width to ask for: 80 columns, and no colours (as with NO_COLOR).
    console = Console(width=None if sys.stdout.isatty() else 80)
    for code in languages:
        first_screen(report, Language.load(code, zone), console)


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("talla")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _choices(allowed: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """A converter of `a,b` that takes nothing but what is allowed."""

    def convert(text: str) -> tuple[str, ...]:
        chosen = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part))
        wrong = [part for part in chosen if part not in allowed]
        if wrong or not chosen:
            raise argparse.ArgumentTypeError(
                f"{wrong[0] if wrong else text!r} is not one of {', '.join(allowed)}"
            )
        return chosen

    return convert
