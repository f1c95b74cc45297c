"""Options that several commands take."""

from __future__ import annotations

import argparse

from agent.config.settings import DEFAULT_PATH


def add_config(parser: argparse.ArgumentParser) -> None:
    """`--config F`."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"the configuration (by default {DEFAULT_PATH}, if it is there)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
