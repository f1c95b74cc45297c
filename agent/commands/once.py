"""`talla-agent once`: this machine now."""

from __future__ import annotations

import argparse

from agent.commands.options import add_config, add_json


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "once",
        help="show this machine now",
        description="Reads this machine twice, a second apart, and shows it.",
    )
    add_config(parser)
    add_json(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints the machine."""
    from agent.commands.machine import opened
    from agent.once import document, take
    from telemetry.clock import SystemClock

    with opened(args.config) as machine:
        found = document(machine.source, take(machine.source, SystemClock()), machine.host)
    if args.json:
        import json

        print(json.dumps(found, indent=2))
    else:
        from agent.once_page import page

        print(page(found))
    return 0
