"""The commands of `talla-agent`, in the order in which help lists them."""

from __future__ import annotations

import argparse
from typing import Protocol

from agent.commands import (
    config,
    doctor,
    inventory,
    metrics,
    once,
    record,
    release,
    rules,
    run,
    simulate,
)


class Command(Protocol):
    """A module that adds its parser; the parser's `func` runs it and returns the exit code."""

    def add_parser(self, subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
        """Adds the command's parser, with `func` as its default."""


COMMANDS: tuple[Command, ...] = (
    run,
    once,
    doctor,
    config,
    metrics,
    rules,
    inventory,
    record,
    release,
    simulate,
)
