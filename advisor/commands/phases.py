"""`talla-advisor phases`: what each GPU was doing, in segments of time."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from advisor.commands.reading import add_reading_options, open_reading

if TYPE_CHECKING:
    from advisor.phase import Segment


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "phases",
        help="what each GPU was doing: training, fine-tuning, inference, idle, unknown",
        description="Segments in time of each GPU over the period told (--since, --until), with"
        " confidence and evidence. What nothing tells clearly is unknown.",
        epilog="example: talla-advisor phases --store /var/lib/talla/store.db --since 30d",
    )
    add_reading_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints the segments of every host."""
    from advisor.commands.names import gpu_names
    from advisor.long_phases import LONG_SECONDS, long_segments
    from advisor.observe import observe

    segments: list[Segment] = []
    places: dict[str, str] = {}
    with open_reading(args) as reading:
        labels = reading.source.labels()
        for host in reading.history.hosts():
            told = reading.told(host)
            if told is None:
                print(f"{host}: no windows before that time", file=sys.stderr)
                continue
            if told.until - told.since >= LONG_SECONDS:
                inventory, found = long_segments(reading.source, reading.history, host, told)
                places |= gpu_names(inventory)
                segments += found
                continue
            observations = observe(reading.history, host, told, labels=labels)
            places |= gpu_names(observations.inventory)
            for timeline in observations.gpus.values():
                segments += timeline.segments
    if args.json:
        print(json.dumps([segment.to_json() for segment in segments], indent=2))
    else:
        _print(segments, places)
    return 0


def _print(segments: Sequence[Segment], places: Mapping[str, str]) -> None:
    from datetime import UTC, datetime

    from rich.console import Console
    from rich.table import Table

    table = Table(
        title="Phases (times in UTC; --json has all the evidence)",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    widths = {"host": 8, "GPU": 3, "from": 16, "to": 16, "phase": 13}
    for name, width in widths.items():
        table.add_column(name, no_wrap=True, min_width=width)
    table.add_column("conf.", justify="right", min_width=5)
    table.add_column("model, or why", no_wrap=True, overflow="ellipsis")
    for s in segments:
        begin, end = (
            datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M") for t in (s.start, s.end)
        )
        table.add_row(
            s.host,
            places.get(s.gpu_uuid, s.gpu_uuid),
            begin,
            end,
            s.phase.value,
            f"{s.confidence:.2f}",
            s.model or (s.evidence[0] if s.evidence else ""),
        )
    Console(soft_wrap=False).print(table)
