"""`talla-agent run`: the daemon."""

from __future__ import annotations

import argparse
from dataclasses import replace

from agent.commands.options import add_config


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "run",
        help="sample this machine until stopped (the daemon)",
        description="Samples this machine every second, keeps windows in the store, and ships them"
        " where [influx] is configured. Stop it with Ctrl-C or SIGTERM; SIGUSR1 lets go of the"
        " GPUs for a driver upgrade, and takes them back.",
    )
    add_config(parser)
    parser.add_argument(
        "--simulate",
        metavar="SCENARIO",
        help="sample a simulated server (a shipped scenario or a TOML file), not this machine",
    )
    parser.add_argument("--store", metavar="FILE", help="where windows are kept")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Checks the configuration, then becomes the daemon."""
    from agent.config.load import load
    from agent.config.settings import StoreSettings
    from agent.errors import UserError
    from agent.launch import Launch, become_daemon
    from agent.version import version

    settings = load(args.config)
    if args.store is not None:
        settings = replace(settings, store=replace(settings.store, path=args.store))
    if args.simulate is not None and settings.store.path == StoreSettings().path:
        raise UserError(
            "a simulated server does not belong into this machine's own store"
            f" ({settings.store.path}): give --store FILE"
        )
    become_daemon(Launch(settings, version(), args.simulate, args.debug))
