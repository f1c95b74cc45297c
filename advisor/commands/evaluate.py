"""`talla-advisor evaluate`: how well phases are told, on recordings and on simulated servers."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

_VARIABLE = "TALLA_TRACES"


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "evaluate",
        help="how well phases are told, on recordings of real runs",
        description="Judges recordings of real runs by telemetry alone, whole and changed in ways"
        " that must not matter, and simulated servers. A recording is a CSV log whose name begins"
        " with its phase and its card, such as train_h100x8_run.csv. Takes some minutes.",
        epilog="example: talla-advisor evaluate ~/recordings -o docs/evaluation.md",
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="FOLDER",
        help=f"the folder with the recordings (default: that of {_VARIABLE})",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write there (default: print)"
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Writes the page."""
    from advisor.errors import AdvisorError, UsageError
    from advisor.evaluation.page import page

    folder = args.folder or (Path(os.environ[_VARIABLE]) if os.environ.get(_VARIABLE) else None)
    if folder is None:
        raise UsageError(f"name a folder with recordings, or set {_VARIABLE}")
    text = page(folder, "talla-advisor evaluate", lambda line: print(line, file=sys.stderr))
    if args.output is None:
        print(text, end="")
        return 0
    try:
        args.output.write_text(text)
    except OSError as error:
        raise AdvisorError(f"{args.output}: {error.strerror}") from None
    print(f"{args.output} written")
    return 0
