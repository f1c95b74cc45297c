"""The commands of `talla-advisor`, one module each.

A module offers `add_parser(subparsers)`, which sets `func=run`, and `run(args) -> int`; what is
heavy it imports inside `run`. A new command is a new module and one name in `COMMANDS`.
"""

from __future__ import annotations

import argparse
from typing import Any, Protocol

from advisor.commands import (
    check,
    config,
    evaluate,
    export,
    findings,
    gpus,
    hours,
    import_,
    label,
    models,
    notify,
    phases,
    plan,
    profiles,
    report,
    serve,
    snooze,
    top,
)


class Command(Protocol):
    """What a command module offers."""

    def add_parser(self, subparsers: argparse._SubParsersAction[Any]) -> None:
        """Adds the command's parser, with `func` set to what runs it."""


COMMANDS: tuple[Command, ...] = (
    import_,
    export,
    check,
    report,
    findings,
    hours,
    phases,
    profiles,
    config,
    label,
    evaluate,
    plan,
    gpus,
    models,
    serve,
    notify,
    snooze,
    top,
)
