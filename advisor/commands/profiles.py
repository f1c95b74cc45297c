"""`talla-advisor profiles`: the documented rules, with their sources."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from typing import Any


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser("profiles", help="the documented rules of each phase")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints every rule: what it says, whether it decides, and the guide's own words."""
    from advisor.profiles import GUIDES, Profiles

    rules = Profiles.load().rules
    if args.json:
        documents = [
            {f.name: v for f in fields(r) if (v := getattr(r, f.name)) is not None} for r in rules
        ]
        print(json.dumps(documents, indent=2, ensure_ascii=False))
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table(expand=True)
    for heading in ("rule", "status", "dimension"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what it says, and where", ratio=1)
    for rule in rules:
        says = f"{rule.says}\n[dim]{GUIDES[rule.guide]}: «{rule.quote}»[/dim]"
        if rule.note:
            says += f"\n{rule.note}"
        table.add_row(rule.id, rule.status.value, rule.dimension.value, says)
    Console().print(table)
    return 0
