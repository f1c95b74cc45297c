"""The command line of the advisor: parsing, exit codes, and the last word on every failure."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import metadata

from advisor.commands import COMMANDS
from advisor.errors import AdvisorError
from telemetry.store import StoreError

_EPILOG = "exit codes: 0 done, 1 failed, 2 wrong usage, 78 wrong configuration"


def parser() -> argparse.ArgumentParser:
    """The parser of `talla-advisor` with every command."""
    top = argparse.ArgumentParser(
        prog="talla-advisor",
        description="Tells whether GPU servers fit the work they do, with the evidence.",
        epilog=_EPILOG,
    )
    top.add_argument("--version", action="version", version=f"talla-advisor {_version()}")
    top.add_argument(
        "--debug", action="store_true", help="show where an unexpected failure came from"
    )
    subparsers = top.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    for subparser in set(subparsers.choices.values()):
        # `talla-advisor report --debug` too; SUPPRESS keeps the value given before the command.
        subparser.add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code. Never raises, but for `SystemExit` of argparse."""
    args = parser().parse_args(argv)
    try:
        code: int = args.func(args)
        sys.stdout.flush()
    except AdvisorError as error:
        return _fail(str(error), error.exit_code)
    except StoreError as error:
        return _fail(str(error), 1)
    except BrokenPipeError:
        # The reader of our output left (`| head`): no fault, and nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _fail("stopped", 130)
    except PermissionError as error:
        if args.debug:
            raise
        return _fail(f"{error.filename or error}: this user may not ({error.strerror})", 1)
    except Exception as error:  # the last resort: one line instead of a traceback
        if args.debug:
            raise
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return _fail(f"unexpected failure ({what}); talla-advisor --debug ... shows where", 1)
    return code


def _fail(message: str, code: int) -> int:
    print(f"talla-advisor: {' '.join(message.split())}", file=sys.stderr)
    return code


def _version() -> str:
    try:
        return metadata.version("talla")
    except metadata.PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
