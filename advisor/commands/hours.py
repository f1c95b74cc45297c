"""`talla-advisor hours`: where the GPU-hours of a period went."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from advisor.commands.reading import add_reading_options, open_reading

if TYPE_CHECKING:
    from advisor.assessment import GpuHours, OwnerHours


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "hours",
        help="GPU-hours by state: busy, idle, held, stuck, starved, unknown",
        description="Where the hours of each GPU went over the period told (--since, --until)."
        " The states add up to the period; time that was not recorded is unknown.",
        epilog="example: talla-advisor hours --store /var/lib/talla/store.db --by owner",
    )
    add_reading_options(parser)
    parser.add_argument(
        "--by", choices=("gpu", "owner"), default="gpu", help="a row a GPU (default) or an owner"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints the hours of every host."""
    from advisor.commands.names import gpu_names
    from advisor.hours import gpu_hours, gpu_hours_json, merged, owner_hours, owner_hours_json
    from advisor.observe import observe

    gpus: list[GpuHours] = []
    places: dict[str, str] = {}
    owners: list[tuple[OwnerHours, ...]] = []
    with open_reading(args) as reading:
        for host in reading.history.hosts():
            told = reading.told(host)
            if told is None:
                print(f"{host}: no windows before that time", file=sys.stderr)
                continue
            observations = observe(reading.history, host, told)
            places |= gpu_names(observations.inventory)
            if args.by == "owner":
                owners.append(owner_hours(observations, told))
            else:
                gpus += gpu_hours(observations, told)
    if args.by == "owner":
        together = merged(owners)
        if args.json:
            print(json.dumps([owner_hours_json(h) for h in together], indent=2))
        else:
            _print_owners(together)
    elif args.json:
        print(json.dumps([gpu_hours_json(h) for h in gpus], indent=2))
    else:
        _print_gpus(gpus, places)
    return 0


def _print_gpus(hours: Iterable[GpuHours], places: Mapping[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    from telemetry.states import State

    hours = list(hours)
    states = [s for s in State if any(h.hours.get(s) for h in hours)]
    table = Table(title="GPU-hours by state", title_justify="left", box=None, pad_edge=False)
    table.add_column("host", overflow="fold")
    table.add_column("GPU", no_wrap=True, min_width=3)
    for state in states:
        table.add_column(state.value, justify="right")
    table.add_column("covered", justify="right")
    table.add_column("lost to", overflow="fold")
    for h in hours:
        starved = [loss for loss in h.losses if loss.state is State.STARVED]
        named = [f"{x.cause.value} ({x.place})" if x.place else x.cause.value for x in starved]
        lost = f"{h.lost_hours:.1f} h: {', '.join(named)}" if starved else ""
        cells = [f"{h.hours.get(state, 0.0):.1f}" for state in states]
        table.add_row(
            h.host, places.get(h.gpu_uuid, h.gpu_uuid), *cells, f"{h.coverage_ratio:.0%}", lost
        )
    Console().print(table)


def _print_owners(hours: Iterable[OwnerHours]) -> None:
    from rich.console import Console
    from rich.table import Table

    from telemetry.states import State

    hours = list(hours)
    states = [s for s in State if any(h.hours.get(s) for h in hours)]
    table = Table(title="GPU-hours by owner", title_justify="left", box=None, pad_edge=False)
    for name in ("owner", "kind"):
        table.add_column(name, overflow="fold")
    for state in states:
        table.add_column(state.value, justify="right")
    for h in hours:
        cells = [f"{h.hours.get(state, 0.0):.1f}" for state in states]
        table.add_row(h.owner, h.owner_kind, *cells)
    Console().print(table)
