"""`talla-agent metrics`: every metric with unit and help."""

from __future__ import annotations

import argparse

from agent.commands.options import add_json


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "metrics",
        help="list every metric with its unit",
        description="Lists every metric: its unit, what it says, and the fields that windows and"
        " InfluxDB keep of it.",
    )
    add_json(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints the declarations."""
    from telemetry.metrics import FAMILIES

    if args.json:
        import json

        document = [
            {
                "measurement": f.measurement,
                "help": f.help,
                "tags": list(f.tags + f.labels),
                "texts": [t for t in f.texts if t not in f.labels],
                "metrics": [
                    {
                        "name": m.name,
                        "unit": m.unit,
                        "kind": m.kind.value,
                        "help": m.help,
                        "fields": [field for _, field in m.fields()],
                    }
                    for m in f.metrics
                ],
            }
            for f in FAMILIES
        ]
        print(json.dumps(document, indent=2))
        return 0
    for number, f in enumerate(FAMILIES):
        print(("\n" if number else "") + f"{f.measurement}: {f.help}")
        width = max(len(m.name) for m in f.metrics)
        for m in f.metrics:
            print(f"  {m.name:<{width}}  {m.unit:<15} {m.help}")
    return 0
