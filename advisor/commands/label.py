"""`talla-advisor label`: a person says what GPUs did, and the classifier learns of it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from advisor.commands.reading import add_store_option, open_reading
from advisor.period import parse_instant

if TYPE_CHECKING:
    from advisor.assessment import Observations

_PHASES = (
    "training",
    "full_finetuning",
    "lora_finetuning",
    "qlora_finetuning",
    "finetuning",
    "llm_inference",
    "light_inference",
    "inference",
)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser(
        "label",
        help="say what GPUs did over some time, where nothing told it",
        description="Says what GPUs of a host did over some time. It is told as such from then on,"
        " and what telemetry showed there joins the table that the classifier is fitted to, so that"
        " work alike is told elsewhere. Kept in advisor.db. Without PHASE the labels are listed.",
        epilog="example: talla-advisor label lora_finetuning --host gpu01 --gpu 0,1"
        " --from 2026-03-02T18:00 --until 2026-03-03T06:00 --store /var/lib/talla/store.db",
    )
    parser.add_argument(
        "phase", nargs="?", choices=_PHASES, metavar="PHASE", help=", ".join(_PHASES)
    )
    parser.add_argument("--host", metavar="HOST", help="the host (default: the only one)")
    parser.add_argument(
        "--gpu", metavar="GPUS", help="indices or UUIDs, separated by commas (default: all at work)"
    )
    parser.add_argument(
        "--from", dest="since", type=parse_instant, metavar="TIME", help="its begin"
    )
    parser.add_argument("--until", type=parse_instant, metavar="TIME", help="its end")
    parser.add_argument("--remove", type=int, metavar="NUMBER", help="take a label back")
    add_store_option(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Adds, takes back or lists labels."""
    from pathlib import Path

    from advisor.config import load
    from advisor.errors import AdvisorError
    from advisor.labels import read_labels
    from advisor.state import State

    path = Path(load(args.config).service.state)
    if args.remove is not None:
        with State(path) as state:
            if not state.unlabel(args.remove):
                raise AdvisorError(f"there is no label {args.remove}")
        print(f"label {args.remove} taken back")
    elif args.phase is not None:
        _add(args, path)
    else:
        for label in read_labels(path).all:
            print(
                f"{label.label_id}: {label.phase}, {label.host} {label.gpu_uuid},"
                f" {_time(label.since)} to {_time(label.until)} (by {label.made_by})"
            )
    return 0


def _add(args: argparse.Namespace, path: Any) -> None:
    import getpass
    import json

    from advisor.assessment import Period
    from advisor.errors import AdvisorError, UsageError
    from advisor.observe import observe
    from advisor.state import State

    if args.since is None or args.until is None or args.since >= args.until:
        raise UsageError("say when with --from TIME and --until TIME")
    since, until = int(args.since), int(args.until)
    with open_reading(args) as reading:
        hosts = reading.history.hosts()
        host = args.host or (hosts[0] if len(hosts) == 1 else None)
        if host not in hosts:
            raise UsageError(f"--host: name one of {', '.join(hosts)}")
        seen = observe(reading.history, host, Period(since, until))
        shown = _shown(seen, _chosen(seen, args.gpu))
    if not shown:
        raise AdvisorError(f"no GPU of {host} was at work from {_time(since)} to {_time(until)}")
    with State(path) as state:
        numbers = state.label(
            [
                (host, uuid, since, until, args.phase, json.dumps(row))
                for uuid, row in shown.items()
            ],
            getpass.getuser(),
        )
    for number, uuid in zip(numbers, shown, strict=True):
        print(f"label {number}: {args.phase}, {host} {uuid}, {_time(since)} to {_time(until)}")


def _chosen(seen: Observations, named: str | None) -> list[str]:
    from advisor.errors import UsageError

    if named is None:
        return list(seen.gpus)
    known = {str(gpu.index): gpu.uuid for gpu in seen.inventory.gpus}
    chosen = [known.get(name.strip(), name.strip()) for name in named.split(",")]
    for uuid in chosen:
        if uuid not in seen.gpus:
            raise UsageError(f"--gpu: {uuid!r} is no GPU of {seen.host}")
    return chosen


def _shown(seen: Observations, uuids: list[str]) -> dict[str, dict[str, float | None]]:
    """The row of each GPU that was at work."""
    from dataclasses import replace

    from advisor.classifier.table import encoded
    from advisor.features import features_of
    from advisor.phases import at_work, power_limit_watts

    found = {}
    for uuid in uuids:
        frame, states = seen.gpus[uuid].frame, seen.gpus[uuid].states
        active = [i for i, state in enumerate(states) if at_work(state)]
        if active:
            limit = power_limit_watts(seen.inventory, uuid, frame)
            windows = range(active[0], active[-1] + 1)
            found[uuid] = features_of(frame, windows, active, limit)
    return {
        uuid: encoded(replace(features, alike_gpus=len(found))) for uuid, features in found.items()
    }


def _time(seconds: float) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
