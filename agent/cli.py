"""The command line of the agent: parsing, exit codes, and the last word on every failure."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from agent.commands import COMMANDS
from agent.guard import guarded

_EPILOG = "exit codes: 0 done, 1 failed, 2 wrong usage, 78 wrong configuration"


class _Version(argparse.Action):
    """Prints the version; looked up only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from agent.version import version

        print(f"talla-agent {version()}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The parser of `talla-agent` with every command."""
    top = argparse.ArgumentParser(
        prog="talla-agent",
        description="Samples a GPU server: what its cards, processors, memory, disks and network"
        " do, second by second.",
        epilog=_EPILOG,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    top.add_argument(
        "--debug", action="store_true", help="show where an unexpected failure came from"
    )
    subparsers = top.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    for subparser in set(subparsers.choices.values()):
        # `talla-agent once --debug` too; SUPPRESS keeps the value given before the command.
        subparser.add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code. Never raises, but for `SystemExit` of argparse."""
    args = parser().parse_args(argv)
    return guarded(lambda: int(args.func(args)), debug=args.debug)


if __name__ == "__main__":
    sys.exit(main())
