"""`talla-advisor notify --test CHANNEL`: sends a sample, to see that a channel works."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "notify",
        help="send a sample to a channel",
        description="Sends a sample to one channel of advisor.toml and says what became of it.",
    )
    parser.add_argument("--test", metavar="CHANNEL", required=True, help="the channel's name")
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="advisor.toml (default: /etc/talla/advisor.toml)",
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Sends the sample; 1 where it is not confirmed."""
    import time
    from zoneinfo import ZoneInfo

    from advisor.channels import NotDelivered, channel_of
    from advisor.config import load
    from advisor.errors import AdvisorError, UsageError
    from advisor.service.alert_message import sample_message
    from advisor.service.notify import targets

    settings = load(args.config)
    found = dict(targets(settings))
    if args.test not in found:
        names = ", ".join(found) or "none: add a [[channels]] table to advisor.toml"
        raise UsageError(f"there is no channel {args.test!r}; channels are: {names}")
    message = sample_message(time.time(), ZoneInfo(settings.digest.timezone))
    try:
        channel_of(found[args.test]).send(message)
    except NotDelivered as error:
        raise AdvisorError(f"channel {args.test}: not delivered: {error}") from None
    print(f"channel {args.test}: delivered")
    return 0
