"""`talla-agent doctor`: what can be sampled here, and what to do about the rest."""

from __future__ import annotations

import argparse

from agent.commands.options import add_config, add_json


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "doctor",
        help="check what can be sampled on this machine",
        description="Checks each capability of this machine: there, or why not and what to do."
        " Exits 1 only where nothing can be sampled.",
    )
    add_config(parser)
    add_json(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints a line for each check."""
    from agent.commands.machine import opened
    from agent.doctor.checkup import Mark, checkup

    with opened(args.config) as machine:
        checks = checkup(machine.settings, machine.source, args.config)
    possible = not any(check.mark is Mark.FATAL for check in checks)
    if args.json:
        import json

        document = {
            "host": machine.host,
            "can_sample": possible,
            "checks": [check.to_json() for check in checks],
        }
        print(json.dumps(document, indent=2))
    else:
        from agent.doctor.page import page

        print(page(machine.host, checks))
    return 0 if possible else 1
