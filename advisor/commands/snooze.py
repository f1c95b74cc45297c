"""`talla-advisor snooze RULE --host H --for 8h`: delivers nothing of it for a while."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "snooze",
        help="deliver nothing of a rule for a while",
        description="Stops the delivery of a rule's alerts, not their evaluation: what still"
        " stands when the time is over is delivered then. Without RULE the snoozes are listed.",
    )
    parser.add_argument("rule", nargs="?", metavar="RULE", help="the rule; * for all")
    parser.add_argument("--host", default="*", metavar="HOST", help="the host; * for all (default)")
    parser.add_argument(
        "--for", dest="length", metavar="TIME", help="how long, such as 8h or 2d (at most 30d)"
    )
    parser.add_argument("--wake", type=int, metavar="NUMBER", help="end a snooze")
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="advisor.toml (default: /etc/talla/advisor.toml)",
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Adds, ends or lists snoozes."""
    import getpass
    import time
    from datetime import UTC, datetime

    from advisor.config import load
    from advisor.errors import AdvisorError, UsageError
    from advisor.period import parse_duration
    from advisor.state import State

    seconds = 0.0
    if args.rule is not None:
        if args.length is None:
            raise UsageError("say how long with --for, such as --for 8h")
        try:
            seconds = parse_duration(args.length)
        except ValueError as error:
            raise UsageError(f"--for: {error}") from None
        if not 0 < seconds <= 30 * 86_400:
            raise UsageError("--for: expected at most 30d; an exemption in the agent lasts longer")
    now = time.time()
    with State(load(args.config).service.state) as state:
        if args.wake is not None:
            if not state.wake(args.wake):
                raise AdvisorError(f"there is no snooze {args.wake}")
            print(f"snooze {args.wake} ended")
        elif args.rule is not None:
            number = state.snooze(args.rule, args.host, now + seconds, now, getpass.getuser())
            until = datetime.fromtimestamp(now + seconds, UTC)
            print(f"snooze {number}: {args.rule} of {args.host} until {until:%Y-%m-%d %H:%M} UTC")
        else:
            for s in state.snoozes(now):
                until = datetime.fromtimestamp(s.until, UTC)
                print(
                    f"{s.snooze_id}: {s.rule} of {s.host} until {until:%Y-%m-%d %H:%M} UTC"
                    f" (by {s.made_by})"
                )
    return 0
