"""`talla-advisor import`: logs that people already have become a store."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.errors import UsageError

if TYPE_CHECKING:
    from advisor.importers.run import Summary

_QUIET_SECONDS = 2.0

_EPILOG = """\
A file may be nvidia-smi --query-gpu CSV (with or without units, header or index), a CSV with
DCGM's field names, or Talla's own CSV (talla-advisor export); gzip is read too. A row covers
until the next one of its GPU; after more than three usual steps there is a gap. What is not
known is skipped and said. Importing a file again changes nothing."""


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "import",
        help="make history from logs: nvidia-smi CSV, DCGM columns, Talla's own CSV",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", type=Path)
    add(
        "--prometheus",
        metavar="URL",
        help="read dcgm-exporter's series (and node_exporter's of the same hosts) from Prometheus"
        " or VictoriaMetrics",
    )
    add(
        "--telegraf",
        metavar="URL",
        help="read Telegraf's nvidia_smi from InfluxDB; http://HOST:8086, or with ?db=NAME",
    )
    add("--token-file", metavar="FILE", type=Path, help="the token for the server, in a file")
    add("--since", metavar="PERIOD", default="28d", help="how far back to read it (default: 28d)")
    add("--until", metavar="TIME", help="up to when to read it (default: now)")
    add("--store", metavar="FILE", type=Path, required=True, help="the store to write")
    add("--host", metavar="NAME", help="host of rows that name none (default: the file's name)")
    add("--gpu-model", metavar="NAME", help="model of the GPUs where the log does not name it")
    add("--gpus", metavar="N", type=_count, help="how many GPUs the server has")
    add(
        "--interval",
        metavar="SECONDS",
        type=_seconds,
        help="seconds between two readings; needed where a file has no time column",
    )
    add(
        "--inventory",
        metavar="FILE",
        type=Path,
        help="what the server is, as talla-agent inventory --json prints it; rows that give"
        " only an index belong to its GPU of that index",
    )
    add(
        "--timezone",
        metavar="ZONE",
        help="zone of times that name none, such as Europe/Madrid (default: UTC)",
    )
    add(
        "--start",
        metavar="TIME",
        help="when a file without a time column begins (default: it ends at its last change)",
    )
    add(
        "--columns",
        metavar="NAMES",
        help="columns of a log written with noheader, as in --query-gpu: timestamp,index,...",
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Imports, and prints what was and what was not used."""
    if sum((bool(args.files), bool(args.prometheus), bool(args.telegraf))) != 1:
        raise UsageError("name files, or --prometheus URL, or --telegraf URL")
    if not args.files:
        from advisor.commands.import_remote import run_remote

        return run_remote(args)
    from advisor.importers.run import Request, import_logs
    from advisor.period import parse_instant

    try:
        start = None if args.start is None else parse_instant(args.start)
    except ValueError as error:
        raise UsageError(f"--start: {error}") from None
    request = Request(
        tuple(args.files),
        args.store,
        args.host,
        args.gpu_model,
        args.gpus,
        args.interval,
        args.inventory,
        start,
        None if args.timezone is None else _zone(args.timezone),
        None if args.columns is None else tuple(args.columns.split(",")),
    )
    with _progress(request.files) as progress:
        summary = import_logs(request, progress)
    print("\n".join(_lines(summary, args.store)))
    return 0


def _lines(summary: Summary, store: Path) -> Iterator[str]:
    yield f"imported {summary.rows} rows into {store}"
    for host in summary.hosts:
        gpus = f"{host.gpus} GPU{'s' * (host.gpus != 1)}"
        yield (
            f"  {host.host}: {gpus}, {_when(host.since)} to {_when(host.until)},"
            f" a row every {host.step:g} s, {host.windows.new} new windows"
            + (f", {host.windows.same} that were there" if host.windows.same else "")
        )
        if host.windows.refused:
            yield (
                f"  {host.host}: {len(host.windows.refused)} windows left out, since the store"
                f" has others of that time (the first: {_when(host.windows.refused[0].start)})"
            )
    if summary.lines.count:
        yield f"lines that could not be read: {summary.lines.count}; first: {summary.lines.first}"
    if summary.cells.count:
        yield f"cells that could not be read: {summary.cells.count}; first: {summary.cells.first}"
    if summary.duplicates:
        yield f"rows that an earlier file had: {summary.duplicates}"
    if summary.unknown_columns:
        yield f"columns not used: {', '.join(summary.unknown_columns)}"
    for note in summary.notes:
        yield f"note: {note}"


def _when(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@contextmanager
def _progress(files: tuple[Path, ...]) -> Iterator[Callable[[Path, int], None] | None]:
    """A bar on a terminal, for imports that take longer than two seconds."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    sizes = {f: f.stat().st_size for f in files if f.exists()}
    begin = time.monotonic()
    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task("reading", total=sum(sizes.values()))
    done: dict[Path, int] = {}

    def told(path: Path, count: int) -> None:
        done[path] = count
        if time.monotonic() - begin > _QUIET_SECONDS:
            bar.start()
            bar.update(task, completed=sum(done.values()), description=path.name)

    try:
        yield told
    finally:
        bar.stop()


def _zone(name: str) -> Any:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise UsageError(f"--timezone {name}: no such zone; write one as Europe/Madrid") from None


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of GPUs")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds (up to a day)")
    return seconds
