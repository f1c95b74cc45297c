"""`talla-advisor check`: what is wrong with the hardware as it stands, in the first minute."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.commands.reading import add_store_option, open_reading
from advisor.errors import UsageError

if TYPE_CHECKING:
    from advisor.finding import Finding


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "check",
        help="what is wrong with the hardware as it stands, from the inventory alone",
        description=(
            "Holds a server's inventory, and what its configuration declares, against the"
            " documented profiles. Needs no samples."
        ),
        epilog="example: talla-agent inventory --json > node.json;"
        " talla-advisor check --inventory node.json",
    )
    add_store_option(parser)
    parser.add_argument(
        "--inventory", metavar="FILE", type=Path, help="what talla-agent inventory --json printed"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints the findings that need no samples."""
    if args.inventory is not None and args.store:
        raise UsageError("give either --inventory or --store")
    findings = _of_file(args.inventory) if args.inventory is not None else _of_store(args)
    if args.json:
        print(json.dumps([f.to_json() for f in findings], indent=2))
    else:
        from advisor.commands.findings_table import print_findings

        print_findings(findings)
    return 0


def _of_file(path: Path) -> list[Finding]:
    from advisor.check import check
    from advisor.inventories import read_file
    from advisor.rulebook import Rulebook

    rulebook = Rulebook.load()
    return [f for inventory in read_file(path).inventories for f in check(inventory, rulebook)]


def _of_store(args: argparse.Namespace) -> list[Finding]:
    from advisor.check import check, last_seen_work
    from advisor.rulebook import Rulebook

    found: list[Finding] = []
    with open_reading(args) as reading:
        rulebook = Rulebook.load(reading.settings.sizing)
        for host in reading.history.hosts():
            inventory = reading.history.inventory(host)
            if inventory is not None:
                found += check(inventory, rulebook, last_seen_work(reading.history, host))
    return found
