"""What the commands that read history share: their options, and opening it."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from advisor.assessment import Period
from advisor.config import DEFAULT_PATH, Settings, load
from advisor.errors import AdvisorError, ConfigUnreadable, UsageError
from advisor.history import History, LocalHistory
from advisor.period import parse_duration, parse_instant, period
from advisor.service.config import InfluxReading

if TYPE_CHECKING:
    from advisor.digests import DayDigests
    from advisor.labels import Labels

_LOG = logging.getLogger(__name__)


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
    """--store (repeatable), --influx and --config alone."""
    parser.add_argument(
        "--influx",
        metavar="URL",
        help="read a fleet's history from InfluxDB instead; http://HOST:8086, or with ?db=NAME."
        " Database, token and certificates are those of [influx] in advisor.toml",
    )
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
class Source:
    """Where history is read: stores, or InfluxDB. `state` is advisor.db, which may keep digests of
    it, and what people said of its windows.
    """

    stores: tuple[Path, ...] = ()
    influx: InfluxReading | None = None
    state: str = ""

    @property
    def name(self) -> str:
        """For messages."""
        if self.influx is None:
            return ", ".join(map(str, self.stores))
        database = self.influx.database_5m or self.influx.database
        return f"{self.influx.url}, database {database!r}"

    def labels(self) -> Labels:
        """What people said of windows, where that can be read."""
        from advisor.labels import NO_LABELS, read_labels

        return read_labels(Path(self.state)) if self.state else NO_LABELS

    @contextmanager
    def opened(self) -> Iterator[History]:
        """The history. Raises StoreError or AdvisorError."""
        if self.influx is None:
            with LocalHistory(self.stores) as local:
                yield local
            return
        from advisor.influx_history import InfluxHistory

        with ExitStack() as opened:
            digests = _digests(self.state, opened)
            yield opened.enter_context(InfluxHistory(self.influx, digests))


@dataclass(frozen=True, slots=True)
class Reading:
    """History, open, with the settings and the periods asked for (seconds, Unix time)."""

    history: History
    settings: Settings
    since: float
    look_back: float
    until: float | None
    source: Source

    def told(self, host: str) -> Period | None:
        """The period that is told of a host; None where it has no windows before its end."""
        return period(self.history, host, self.since, self.until)

    def sized(self, host: str) -> Period | None:
        """The period that findings of a host rest on; None where it has no windows in it."""
        return period(self.history, host, self.look_back, self.until)


def settings_of(args: argparse.Namespace) -> Settings:
    """The settings of --config, or of the service.

    Those of the service are not for everybody's eyes: who may not read them and names a store of
    their own is judged by the defaults, and told so.
    """
    try:
        return load(args.config)
    except ConfigUnreadable:
        if args.config is not None or not args.store:
            raise
        print(
            f"talla-advisor: {DEFAULT_PATH} may not be read by this user: the defaults are taken",
            file=sys.stderr,
        )
        return Settings()


@contextmanager
def open_reading(args: argparse.Namespace) -> Iterator[Reading]:
    """The history that the options name, closed at the end of the block.

    Raises UsageError where no store is named, StoreError for one that cannot be read, and
    AdvisorError where there is no host in any.
    """
    settings = settings_of(args)
    influx = getattr(args, "influx", None)
    if influx is not None and args.store:
        raise UsageError("--store and --influx do not go together: name one")
    paths = args.store or ([] if influx else [Path(p) for p in settings.stores])
    if not paths and not (influx or settings.influx.url):
        raise UsageError(
            "name a store to read with --store FILE (or InfluxDB with --influx URL), or `stores`"
            " in advisor.toml"
        )
    source = (
        Source(tuple(paths), state=settings.service.state)
        if paths
        else Source(influx=influx_settings(settings.influx, influx), state=settings.service.state)
    )
    with source.opened() as history:
        if not history.hosts():
            raise AdvisorError(f"{source.name}: nothing was recorded here yet")
        yield Reading(
            history,
            settings,
            _or(getattr(args, "since", None), parse_duration(settings.periods.since)),
            _or(getattr(args, "look_back", None), parse_duration(settings.periods.look_back)),
            getattr(args, "until", None),
            source,
        )


def influx_settings(
    settings: InfluxReading, url: str | None, option: str = "--influx"
) -> InfluxReading:
    """The settings of [influx] with the address of the command line, whose query may name the
    database (db) and that of the 5-minute windows (db_5m). Raises UsageError."""
    if url is None:
        return settings
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{option} {url}: expected http://HOST:PORT or https://HOST:PORT")
    if parts.username or parts.password:
        raise UsageError(f"{option}: no password on a command line; name a token file")
    query = dict(parse_qsl(parts.query))
    unknown = sorted(set(query) - {"db", "db_5m"})
    if unknown:
        raise UsageError(f"{option}: {unknown[0]!r} is not known; expected db, db_5m")
    return replace(
        settings,
        url=urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")),
        database=query.get("db", settings.database),
        database_5m=query.get("db_5m", "" if "db" in query else settings.database_5m),
    )


def _digests(state: str, opened: ExitStack) -> DayDigests | None:
    """Where days once read are kept, if this user may keep them."""
    from advisor.digests import DayDigests
    from advisor.state import State

    try:
        # A folder that is not ours would be left with a file that its owner may not write.
        if Path(state).parent.stat().st_uid == os.geteuid():
            return opened.enter_context(DayDigests(opened.enter_context(State(state))))
    except (AdvisorError, OSError) as error:
        _LOG.info("days are read anew each time: %s", error)
    return None


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
