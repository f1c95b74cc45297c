"""`talla-advisor phases`: what each GPU was doing, in segments of time."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
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
    from advisor.observe import observe

    segments: list[Segment] = []
    with open_reading(args) as reading:
        for host in reading.history.hosts():
            told = reading.told(host)
            if told is None:
                print(f"{host}: no windows before that time", file=sys.stderr)
                continue
            observations = observe(reading.history, host, told)
            for timeline in observations.gpus.values():
                segments += timeline.segments
    if args.json:
        print(json.dumps([segment.to_json() for segment in segments], indent=2))
    else:
        _print(segments)
    return 0


def _print(segments: Sequence[Segment]) -> None:
    from datetime import UTC, datetime

    from rich.console import Console
    from rich.table import Table

    table = Table(title="Phases (times in UTC)", title_justify="left")
    for name in ("host", "gpu", "from", "to", "phase"):
        table.add_column(name, overflow="fold")
    table.add_column("confidence", justify="right")
    for name in ("model", "evidence"):
        table.add_column(name, overflow="fold")
    for s in segments:
        begin, end = (
            datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M") for t in (s.start, s.end)
        )
        table.add_row(
            s.host,
            s.gpu_uuid,
            begin,
            end,
            s.phase.value,
            f"{s.confidence:.2f}",
            s.model or "",
            "; ".join(s.evidence),
        )
    Console().print(table)
