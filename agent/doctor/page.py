"""The check-up for people: a line each, in colour where somebody looks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from agent.doctor.checkup import Check, Mark
from telemetry.plain import plain

_SIGNS = {Mark.OK: "✓", Mark.ABSENT: "–", Mark.PROBLEM: "!", Mark.FATAL: "✗"}
_COLOURS = {Mark.OK: "32", Mark.ABSENT: "2", Mark.PROBLEM: "33", Mark.FATAL: "31"}


def page(host: str, checks: Iterable[Check], *, colour: bool | None = None) -> str:
    """The check-up as text."""
    told = list(checks)
    bright = colour if colour is not None else _wanted()
    width = max(len(check.name) for check in told)
    lines = [f"Check-up of {host}", ""]
    for check in told:
        line = plain(f"{_SIGNS[check.mark]} {check.name:<{width}}  {check.text}")
        lines.append(f"\x1b[{_COLOURS[check.mark]}m{line}\x1b[0m" if bright else line)
        if check.remedy is not None:
            lines.append(f"  {'':<{width}}  → {check.remedy}")
    problems = sum(check.mark in (Mark.PROBLEM, Mark.FATAL) for check in told)
    lines.append("")
    if any(check.mark is Mark.FATAL for check in told):
        lines.append("This machine cannot be sampled.")
    elif problems:
        what = "one thing" if problems == 1 else f"{problems} things"
        lines.append(f"This machine can be sampled; {what} could be better.")
    else:
        lines.append("All is well.")
    return "\n".join(lines)


def _wanted() -> bool:
    """Colours on a terminal, unless NO_COLOR is set (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
