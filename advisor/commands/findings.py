"""`talla-advisor findings`: one finding a dimension of each server."""

from __future__ import annotations

import argparse
import json
from typing import Any

from advisor.commands.reading import add_reading_options, open_reading


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "findings",
        help="what fits and what does not, by server and dimension",
        description="Findings over the look-back: an overall verdict and one a dimension.",
        epilog="example: talla-advisor findings --store /var/lib/talla/store.db",
    )
    add_reading_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints the findings of every host."""
    from advisor.assess import assess_all
    from advisor.commands.findings_table import print_findings

    with open_reading(args) as reading:
        findings = [f for assessment in assess_all(reading) for f in assessment.findings]
    if args.json:
        print(json.dumps([f.to_json() for f in findings], indent=2))
    else:
        print_findings(findings)
    return 0
