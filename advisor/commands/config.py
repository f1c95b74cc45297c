"""`talla-advisor config`: the commented default configuration, or the check of one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "config", help="print the commented default configuration, or check one"
    )
    parser.add_argument("--check", metavar="FILE", type=Path, help="check this file instead")
    parser.add_argument(
        "--prices", action="store_true", help="print an example of the file of prices instead"
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints the default configuration, or that the checked file is right."""
    from advisor import config, prices

    if args.prices:
        print(prices.example(), end="")
    elif args.check is None:
        print(config.default_text(), end="")
    else:
        named = config.load(args.check).prices
        if named:
            prices.load(Path(named))
        print(f"{args.check}: right")
    return 0
