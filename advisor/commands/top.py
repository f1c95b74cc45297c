"""`talla-advisor top`: how it stands now, in a terminal, refreshed."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from advisor.commands.reading import add_store_option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from advisor.report.language import Language
    from advisor.web.local import LocalSource

_NARROW = 110


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "top",
        help="now, in a terminal: each GPU's state, activity, memory, power and whose work it is",
        description="Refreshed until Ctrl-C. In a pipe, or with --once, it is told once.",
    )
    add_store_option(parser)
    parser.add_argument("--once", action="store_true", help="tell it once and end")
    parser.add_argument("--lang", choices=("en", "es"), help="language (default: configuration's)")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Shows the stores' newest windows."""
    from pathlib import Path

    from rich.console import Console
    from rich.live import Live

    from advisor.commands.reading import settings_of
    from advisor.errors import AdvisorError, UsageError
    from advisor.report.language import Language
    from advisor.web.local import LocalSource
    from advisor.web.picture import SourceError

    settings = settings_of(args)
    paths = args.store or [Path(p) for p in settings.stores]
    if not paths:
        raise UsageError("name a store to read with --store FILE, or `stores` in advisor.toml")
    source, language = LocalSource(paths), Language.load(args.lang or settings.language)
    terminal = sys.stdout.isatty()
    console = Console(width=None if terminal else 80)
    try:
        first = _look(source, language, console.width)
    except SourceError as error:
        raise AdvisorError(str(error)) from None
    if args.once or not terminal:
        console.print(first, highlight=False)
        return 0
    with Live(first, console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                time.sleep(source.every)
                live.update(_patient(source, language, console.width), refresh=True)
            except KeyboardInterrupt:
                return 0


def _look(source: LocalSource, language: Language, width: int) -> RenderableType:
    from advisor.report.now import screen

    return screen(source.look(), language, time.time(), narrow=width < _NARROW)


def _patient(source: LocalSource, language: Language, width: int) -> RenderableType:
    """The picture, or why there is none at the moment: an agent may be starting anew."""
    from advisor.report.now import screen
    from advisor.web.picture import Picture, SourceError

    try:
        return _look(source, language, width)
    except SourceError as error:
        return screen(Picture(), language, time.time(), narrow=True, trouble=str(error))
