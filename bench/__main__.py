"""`python -m bench`: measures, writes the page, fails where a budget is broken."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
from pathlib import Path

from bench.kept import Kept
from bench.measure import Run
from bench.page import Budgets, page, verdicts
from bench.programs import Program, programs
from bench.runner import ProgramFailed, run
from bench.staging import machine, sink


def main() -> int:
    """Exit code 1 where a budget is broken or a program could not be run."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short run each, 3 minutes")
    parser.add_argument("--only", metavar="NAME", action="append", help="this program; repeatable")
    parser.add_argument("-o", "--output", type=Path, help="the page; without it nothing is written")
    parser.add_argument(
        "--keep",
        metavar="FOLDER",
        type=Path,
        help="keep each run there, and take over what a stopped benchmark of today kept",
    )
    args = parser.parse_args()
    warm_up, seconds, rounds = (7.0, 18.0, 1) if args.quick else (15.0, 90.0, 3)
    kept = None if args.keep is None else Kept(args.keep, (warm_up, seconds))
    loads: list[float] = []
    measured: dict[str, list[Run]] = {}
    failed = False
    with tempfile.TemporaryDirectory() as folder, machine(Path(folder)) as staged, sink() as url:
        found, left_out = programs(url)
        if args.only:
            found = [program for program in found if program.name in args.only]
        for number, program in itertools.product(range(1, rounds + 1), tuple(found)):
            if program not in found:
                continue
            before = None if kept is None else kept.find(program, number)
            try:
                if before is None:
                    done = run(program, staged, warm_up=warm_up, seconds=seconds)
                    before = done, os.getloadavg()[0]
                    if kept is not None:
                        kept.put(program, number, *before)
            except ProgramFailed as error:
                print(f"bench: {error}", file=sys.stderr)
                left_out.append(str(error))
                failed |= program.ours
                found.remove(program)
                continue
            measured.setdefault(program.name, []).append(before[0])
            loads.append(before[1])
            _say(program, before[0])
    results = [(program, measured[program.name]) for program in found]
    judged = verdicts(results, Budgets.load())
    how = (
        f"{rounds} run{'s' * (rounds > 1)} of {seconds:.0f} s after {warm_up:.0f} s of warm-up, in"
        f" turn, one at a time; load of the machine meanwhile (1 min) {min(loads):.1f} to"
        f" {max(loads):.1f}."
    )
    if args.output is not None and not failed and not args.only:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(page(results, judged, left_out, how), "utf-8")
    for verdict in judged:
        mark = "met   " if verdict.met else "BROKEN"
        print(f"{mark} {verdict.what}: {verdict.measured} (allowed {verdict.allowed})")
    return 1 if failed or not all(verdict.met for verdict in judged) else 0


def _say(program: Program, done: Run) -> None:
    print(
        f"{program.name}: {done.cpu_seconds_per_1000_ticks:.2f} CPU s for 1,000 ticks, PSS"
        f" {done.pss_bytes / (1 << 20):.1f} MiB, RSS {done.rss_bytes / (1 << 20):.1f} MiB,"
        f" {done.nvml_calls_per_tick:.0f} NVML calls a tick,"
        f" {done.cpu_seconds:.3f} CPU s in {done.ticks:.0f} s",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
