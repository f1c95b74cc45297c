"""Writes docs/alert-proof.md (`make verify-alerts`): `python -m tests.alerts.proof [GPU_DAYS]`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from agent.alerts.text import duration_text
from tests.alerts.cases import healthy
from tests.alerts.fleet import HEALTHY, false_alarms, summary
from tests.alerts.staged import BOOK, judged, windows_of
from tests.alerts.test_cases import told_of
from tests.alerts.troubles import troubles

_HEAD = """\
# What the alert rules tell, and what they do not

Written by `make verify-alerts`, from the very rules, aggregator and evaluation of the agent.
"""


def page(gpu_days: float) -> Iterator[str]:
    """The page's lines."""
    yield _HEAD
    yield from _detection()
    yield from _healthy()
    yield from _traces()
    yield "## Simulated healthy servers\n"
    done, found = false_alarms(gpu_days, 2)
    names = ", ".join(HEALTHY)
    yield f"Scenarios {names}: 10-second windows, with missed seconds and restarts."
    yield "A simulated server is smoother than a real one: this shows that nothing flaps.\n"
    yield "\n".join(f"- {line}" for line in summary(done, found).splitlines())


def _detection() -> Iterator[str]:
    yield "## Detection: time from onset\n"
    yield "Staged second by second (tests/alerts/cases.py); by construction, not from recordings.\n"
    yield "| trouble | rule | the rule waits | told after |"
    yield "|---|---|---:|---:|"
    for case in troubles():
        rule = next(r for r in BOOK.rules if r.name == case.rule)
        raised = [t for t in judged(windows_of(case.samples())) if t.raised]
        after = ", ".join(duration_text(t.at - case.onset) for t in raised if t.rule == case.rule)
        other = [t.rule for t in raised if t.rule != case.rule]
        wrong = f" (and {', '.join(other)})" if other else ""
        waits = duration_text(rule.raise_seconds) if rule.raise_seconds else "one window"
        yield f"| {case.name} | `{case.rule}` | {waits} | {after or 'never'}{wrong} |"
    yield ""


def _healthy() -> Iterator[str]:
    yield "## Awkward healthy work\n"
    yield "| case | length | alerts |"
    yield "|---|---:|---|"
    for case in healthy():
        raised = [t.rule for t in judged(windows_of(case.samples())) if t.raised]
        told = ", ".join(raised) or "none"
        yield f"| {case.name} | {duration_text(case.seconds)} | {told} |"
    yield ""


def _traces() -> Iterator[str]:
    folder = os.environ.get("TALLA_TRACES")
    yield "## Recordings of real runs\n"
    if not folder:
        yield "Not run: `TALLA_TRACES` names no folder.\n"
        return
    yield "Public logs of real runs as 1-second means, read by the importer. No processes are in"
    yield "them, so that idle memory and stuck ranks are judged on less than an agent sees; and"
    yield "they last 4 to 28 minutes, so that rules that wait longer were not put to the test.\n"
    yield "| recording | 10-second windows | alerts of severity warning or above |"
    yield "|---|---:|---|"
    for trace in sorted(Path(folder).glob("*.csv")):
        with tempfile.TemporaryDirectory() as place:
            count, told = told_of(trace, Path(place))
        serious = [t.rule for t in told if t.raised and t.serious]
        yield f"| {trace.stem} | {count} | {', '.join(serious) or 'none'} |"
    yield ""


if __name__ == "__main__":
    # The importer prints what it did: the page alone goes to standard output.
    lines = []
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        lines = list(page(float(sys.argv[1]) if len(sys.argv) > 1 else 200.0))
    finally:
        sys.stdout = out
    print("\n".join(lines))
