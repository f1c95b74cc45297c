"""`talla-agent config`: the default configuration, or a check of one."""

from __future__ import annotations

import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "config",
        help="print the commented default configuration, or check a file",
        description="Prints the commented default configuration.",
    )
    parser.add_argument("--check", metavar="FILE", help="check a configuration instead")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints the default, or says whether a file is right."""
    if args.check is None:
        from agent.config.text import default_toml

        print(default_toml(), end="")
        return 0
    from agent.config.load import load

    load(args.check)
    print(f"{args.check}: right")
    return 0
