"""`talla-agent inventory`: what this server is."""

from __future__ import annotations

import argparse

from agent.commands.options import add_config, add_json


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "inventory",
        help="print what this server is",
        description="Prints what this server is: processors, memory, GPUs, disks, mounts, NICs, and"
        " what [server] of the configuration says about it.",
    )
    add_config(parser)
    add_json(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints the inventory, as JSON with or without `--json`."""
    import json

    from agent.commands.machine import opened
    from agent.once import take
    from telemetry.clock import SystemClock

    with opened(args.config) as machine:
        take(machine.source, SystemClock())
        document = machine.source.inventory().to_json()
    print(json.dumps(document, indent=2))
    return 0
