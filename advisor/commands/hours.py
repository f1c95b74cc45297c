"""`talla-advisor hours`: where the GPU-hours of a period went."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from advisor.commands.reading import add_reading_options, open_reading

if TYPE_CHECKING:
    from advisor.assessment import GpuHours, Loss, OwnerHours

_SHOWN = 3
"""Losses of one GPU that are written out; all are in the JSON."""
_CEILINGS = {"link": "its link", "benchmark": "your benchmark"}
_TOO_SMALL = 0.01
"""Of a GPU's hours: what held it back in less is in the JSON alone."""


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
        labels = reading.source.labels()
        for host in reading.history.hosts():
            told = reading.told(host)
            if told is None:
                print(f"{host}: no windows before that time", file=sys.stderr)
                continue
            observations = observe(reading.history, host, told, labels=labels)
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
    console = Console()
    table = Table(title="GPU-hours by state", title_justify="left", box=None, pad_edge=False)
    table.add_column("host", overflow="fold")
    table.add_column("GPU", no_wrap=True, min_width=3)
    for state in states:
        table.add_column(state.value, justify="right")
    table.add_column("covered", justify="right")
    table.add_column("lost to", overflow="fold")
    for h in hours:
        starved = (x.cause.value for x in h.losses if x.state is State.STARVED)
        named = ", ".join(dict.fromkeys(starved))
        lost = f"{_hours(h.lost_hours)} h: {named}" if named else ""
        cells = [_hours(h.hours.get(state, 0.0)) for state in states]
        table.add_row(
            h.host, places.get(h.gpu_uuid, h.gpu_uuid), *cells, f"{h.coverage_ratio:.0%}", lost
        )
    console.print(table)
    for line in _held_back(hours, places):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _held_back(hours: Iterable[GpuHours], places: Mapping[str, str]) -> Iterator[str]:
    """What held each GPU back, with the place, what it carried, and the evidence."""
    told = False
    for h in hours:
        total = sum(h.hours.values())
        large = [x for x in h.losses if x.hours >= _TOO_SMALL * total]
        for loss in large[:_SHOWN]:
            if not told:
                yield "\nWhat held GPUs back"
                told = True
            name = places.get(h.gpu_uuid, h.gpu_uuid)
            yield f"{h.host} GPU {name}: {_loss(loss)}"
            yield from (f"    {line}" for line in loss.evidence)


def _loss(loss: Loss) -> str:
    """A line on one loss."""
    from advisor.message import Amount

    cause = "a cause that is not known" if loss.cause.value == "unknown" else loss.cause.value
    text = f"{_hours(loss.hours)} h {loss.state.value}, "
    if loss.lost_hours is None:
        text += f"held back by {cause}"
    else:
        text += f"of which {_hours(loss.lost_hours)} h lost to {cause}"
    if loss.place is not None:
        text += f" at {loss.place}"
    if loss.bytes_per_second is not None:
        text += f" ({Amount(loss.bytes_per_second, 'bytes/second')}"
        if loss.ceiling_bytes_per_second is not None:
            most = Amount(loss.ceiling_bytes_per_second, "bytes/second")
            text += f"; {_CEILINGS.get(loss.ceiling_source or '', 'it')} gives {most}"
        text += ")"
    return f"{text}, confidence {loss.confidence:.2f}"


def _hours(value: float) -> str:
    """Hours for people: minutes show where it is less than one."""
    return f"{value:.2f}" if 0 < value < 0.95 else f"{value:.1f}"


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
        cells = [_hours(h.hours.get(state, 0.0)) for state in states]
        table.add_row(h.owner, h.owner_kind, *cells)
    Console().print(table)
