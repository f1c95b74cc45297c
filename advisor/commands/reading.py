"""What the commands that read history share: their options, and opening it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from advisor.assessment import Period
from advisor.config import Settings, load
from advisor.errors import AdvisorError, UsageError
from advisor.history import History, LocalHistory
from advisor.period import parse_duration, parse_instant, period


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """--store, --since, --look-back, --until and --config."""
    add_store_option(parser)
    parser.add_argument(
        "--since",
        metavar="PERIOD",
        type=_checked(parse_duration),
        help="length of the period that is told, such as 7d or 12h (default: 7d)",
    )
    parser.add_argument(
        "--look-back",
        metavar="PERIOD",
        type=_checked(parse_duration),
        help="length of the period that is sized (default: 28d)",
    )
    parser.add_argument(
        "--until",
        metavar="TIME",
        type=_checked(parse_instant),
        help="end of both, ISO 8601 (UTC where it names no zone) or seconds since 1970"
        " (default: each host's newest window)",
    )


def add_store_option(parser: argparse.ArgumentParser) -> None:
    """--store (repeatable) and --config alone."""
    parser.add_argument(
        "--store",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="a store to read; may be given several times",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="advisor.toml (default: /etc/talla/advisor.toml)",
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """History, open, with the settings and the periods asked for (seconds, Unix time)."""

    history: History
    settings: Settings
    since: float
    look_back: float
    until: float | None

    def told(self, host: str) -> Period | None:
        """The period that is told of a host; None where it has no windows before its end."""
        return period(self.history, host, self.since, self.until)

    def sized(self, host: str) -> Period | None:
        """The period that findings of a host rest on; None where it has no windows in it."""
        return period(self.history, host, self.look_back, self.until)


@contextmanager
def open_reading(args: argparse.Namespace) -> Iterator[Reading]:
    """The history that the options name, closed at the end of the block.

    Raises UsageError where no store is named, StoreError for one that cannot be read, and
    AdvisorError where there is no host in any.
    """
    settings = load(args.config)
    paths = args.store or [Path(p) for p in settings.stores]
    if not paths:
        raise UsageError("name a store to read with --store FILE, or `stores` in advisor.toml")
    with LocalHistory(paths) as history:
        if not history.hosts():
            raise AdvisorError(f"{', '.join(map(str, paths))}: nothing was recorded here yet")
        yield Reading(
            history,
            settings,
            _or(getattr(args, "since", None), parse_duration(settings.periods.since)),
            _or(getattr(args, "look_back", None), parse_duration(settings.periods.look_back)),
            getattr(args, "until", None),
        )


def _or(given: float | None, default: float) -> float:
    return default if given is None else given


def _checked(parse: Callable[[str], float]) -> Callable[[str], float]:
    """A converter for argparse that shows the parser's own words."""

    def convert(text: str) -> float:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert
