"""`talla-advisor import --prometheus URL` and `--telegraf URL`."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from advisor.commands.reading import influx_settings
from advisor.errors import AdvisorError, UsageError
from advisor.importers.prometheus import Prometheus
from advisor.importers.remote import Source, import_remote
from advisor.importers.run import Request
from advisor.importers.telegraf import Telegraf
from advisor.period import parse_duration, parse_instant
from advisor.service.config import InfluxReading


def run_remote(args: argparse.Namespace) -> int:
    """Imports from a server, and prints what was imported."""
    try:
        until = time.time() if args.until is None else parse_instant(args.until)
        since = until - parse_duration(args.since)
    except ValueError as error:
        raise UsageError(str(error)) from None
    request = Request((), args.store, args.host, args.gpu_model, args.gpus, None, args.inventory)
    done = import_remote(_source(args), request, since, until, _progress)
    windows = sum(h.windows.new for s in done.summaries for h in s.hosts)
    rows = sum(s.rows for s in done.summaries)
    hosts = sorted({h.host for s in done.summaries for h in s.hosts})
    print(f"imported {rows} rows of {len(hosts)} hosts into {args.store}: {windows} new windows")
    if done.days_before:
        print(f"days that were there already: {done.days_before}")
    unknown = sorted({title for s in done.summaries for title in s.unknown_columns})
    if unknown:
        print(f"series not used: {', '.join(unknown)}")
    for note in sorted({note for s in done.summaries for note in s.notes}):
        print(f"note: {note}")
    return 0


def _source(args: argparse.Namespace) -> Source:
    if args.prometheus is not None:
        url = influx_settings(InfluxReading(), args.prometheus, "--prometheus").url
        return Prometheus(url, token=_token(args.token_file), step=args.interval or 30.0)
    settings = influx_settings(
        InfluxReading(database="telegraf", timeout_seconds=60.0), args.telegraf, "--telegraf"
    )
    return Telegraf(replace(settings, token_file=str(args.token_file or "")))


def _token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or "no UTF-8 text"
        raise AdvisorError(f"{path}: the token cannot be read ({words})") from None


def _progress(host: str, number: int, count: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if number == count else ""
        sys.stderr.write(f"\r{host}: day {number} of {count}\x1b[K{end}")
        sys.stderr.flush()


__all__ = ["run_remote"]
