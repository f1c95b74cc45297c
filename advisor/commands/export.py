"""`talla-advisor export`: history as Talla's own CSV."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from advisor.commands.reading import add_store_option, open_reading
from advisor.errors import AdvisorError


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "export", help="write the 5-minute windows as Talla's own CSV, which import reads"
    )
    add_store_option(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="the file to write (default: standard output)",
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Writes the CSV."""
    from advisor.export import export_csv

    with open_reading(args) as reading:
        if args.output is None:
            export_csv(reading.history, sys.stdout)
            return 0
        try:
            with args.output.open("w", encoding="utf-8", newline="") as out:
                rows = export_csv(reading.history, out)
        except OSError as error:
            raise AdvisorError(f"{args.output}: cannot be written ({error.strerror})") from None
    print(f"{args.output}: {rows} rows", file=sys.stderr)
    return 0
