"""`talla-agent simulate`: a store with simulated history."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

_STEP = 300
_BATCH = 288


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "simulate",
        help="fill a store with the history of a simulated server",
        description="Fills a store with the history of a simulated server: 5-minute windows, and"
        " 10-second windows of the last ten minutes.",
    )
    parser.add_argument(
        "--scenario", required=True, metavar="NAME", help="a shipped scenario, or a TOML file"
    )
    parser.add_argument(
        "--days", required=True, type=_days, metavar="N", help="length of the history"
    )
    parser.add_argument(
        "--store", required=True, metavar="FILE", help="the store, made if it is not there"
    )
    parser.add_argument(
        "--until",
        type=_time,
        metavar="T",
        help="its end: Unix seconds, or ISO 8601 (UTC unless it says); by default now",
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Writes the history."""
    from agent.commands.progress import Progress
    from agent.simulated import read_scenario
    from telemetry.simulation import history
    from telemetry.store import Store
    from telemetry.window import Window

    scenario = read_scenario(args.scenario)
    until = int(time.time() if args.until is None else args.until) // _STEP * _STEP
    start = until - round(args.days * 86_400 / _STEP) * _STEP
    if start < 0:
        raise ValueError("the history would begin before 1970")
    inventory = scenario.inventory()
    count = 0
    with Store(args.store) as store, Progress(f"simulating {inventory.host}") as bar:
        store.append(inventories=[(float(start), inventory.host, inventory.to_json())])
        batch: list[Window] = []
        for window in history(scenario, start, args.days):
            batch.append(window)
            if len(batch) == _BATCH:
                count += len(batch)
                store.append(batch)
                batch = []
                bar.at((window.start - start) / (until - start))
        store.append(batch)
        count += len(batch)
    print(
        f"{args.store}: {inventory.host}, SIMULATED from {args.scenario} ({scenario.title}),"
        f" {args.days:g} days until {datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC,"
        f" {count} windows"
    )
    return 0


def _days(text: str) -> float:
    days = float(text)
    if not 0 < days <= 3650:
        raise argparse.ArgumentTypeError("expected a number of days, more than 0, at most 3650")
    return days


def _time(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither Unix seconds nor a time such as 2026-03-01T12:00:00Z"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
