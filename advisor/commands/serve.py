"""`talla-advisor serve`: the scheduled service."""

from __future__ import annotations

import argparse
from typing import Any

from advisor.commands.reading import add_store_option


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "serve",
        help="the service: delivers alerts, makes the weekly report",
        description="Runs until SIGTERM or Ctrl-C: takes in alerts of the stores (or of [influx])"
        " and delivers them to the channels of advisor.toml, makes the weekly report, serves the"
        " local page, deletes what is old. It may be killed at any time: nothing is lost.",
    )
    add_store_option(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Serves until a signal ends it."""
    import logging
    import signal
    import threading

    from advisor.config import load
    from advisor.service.service import Service
    from advisor.web.server import PageServer
    from telemetry import logs

    logs.start("info")
    settings = load(args.config)
    service = Service(settings, stores=args.store, config=args.config)
    page = None
    if settings.page.enabled:
        page = PageServer(settings, service.state, args.store, args.config)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    service.start()
    if page is not None:
        page.start()
    ended.wait()
    if page is not None:
        page.stop()
    service.stop()
    # A channel that does not answer may keep its thread: nothing waits for it.
    logging.shutdown()
    import os

    os._exit(0)
