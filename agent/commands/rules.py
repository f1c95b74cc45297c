"""`talla-agent rules`: the alert rules, and their own test series."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from typing import TYPE_CHECKING

from agent.commands.options import add_config

if TYPE_CHECKING:
    from agent.alerts.rulebook import Rule, Rulebook


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "rules",
        help="the alert rules, and a run of their own test series",
        description="Lists the alert rules as they hold on this machine: Talla's own, changed by"
        " the *.toml files of the folder that [alerts] rules names.",
    )
    add_config(parser)
    parser.add_argument("--rules", metavar="DIR", help="folder of your own rules and exemptions")
    parser.add_argument("--test", action="store_true", help="run the series beside each rule")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Lists the rules or runs their series; 1 where a series fails."""
    from agent.alerts.rulebook import Rulebook
    from agent.config.load import load

    book = Rulebook.load(args.rules or load(args.config).alerts.rules)
    if args.test:
        return _test(book, as_json=args.json)
    if args.json:
        json.dump([_document(rule) for rule in book.rules], sys.stdout, indent=2)
        print()
        return 0
    for rule in book.rules:
        print(f"{rule.name}  ({rule.severity.value}, each {rule.scope})")
        print(_wrapped(condition(rule)))
        print(_wrapped(rule.title.format(subject="SUBJECT", host="HOST", value="VALUE")))
        print(_wrapped(f"Look first at: {rule.look}"))
        if rule.suppresses:
            print(_wrapped(f"While it is raised these are silent: {', '.join(rule.suppresses)}"))
        print(_wrapped(f"Source: {rule.source}"))
        print()
    for exemption in book.exemptions:
        print(f"exempt: {', '.join(exemption.rules)} ({exemption.reason})")
    return 0


def condition(rule: Rule) -> str:
    """When a rule raises and clears, in words."""
    from agent.alerts.text import duration_text

    if rule.state is not None:
        what = f"state {rule.state.value}"
        if rule.except_notes:
            what += f" (not {' or '.join(note.value for note in rule.except_notes)})"
        until = "another state"
    else:
        sign, back = (">=", "<=") if rule.raise_at > rule.clear_at else ("<=", ">=")
        what = f"{rule.metric} {sign} {rule.raise_at:g}"
        until = f"{back} {rule.clear_at:g}"
        if rule.absent == "clear":
            until += " or no reading"
    lasts = f" for {duration_text(rule.raise_seconds)}" if rule.raise_seconds else " in one window"
    return (
        f"Raised by {what}{lasts}, cleared by {until} for {duration_text(rule.clear_seconds)};"
        f" {rule.tier}-second windows."
    )


def _test(book: Rulebook, *, as_json: bool) -> int:
    from agent.alerts.rule_test import run_series

    outcomes = list(run_series(book))
    untested = [rule.name for rule in book.rules if not rule.series]
    if as_json:
        rows = [
            {
                "rule": o.rule.name,
                "series": o.series.name,
                "passed": o.passed,
                "expected": [f"{what} {seconds} s" for what, seconds in o.series.expect],
                "found": [f"{what} {seconds} s" for what, seconds in o.found],
                "source": o.series.source or "made for this rule: a test of its syntax",
            }
            for o in outcomes
        ]
        json.dump(rows, sys.stdout, indent=2)
        print()
    else:
        for outcome in outcomes:
            print(
                f"{'ok  ' if outcome.passed else 'FAIL'} {outcome.rule.name}: {outcome.series.name}"
            )
            if not outcome.passed:
                print(f"     expected {_told(outcome.series.expect)}, got {_told(outcome.found)}")
        failed = sum(not o.passed for o in outcomes)
        print(f"{len(outcomes)} series of {len(book.rules)} rules, {failed} failed")
        if untested:
            print(f"without a series: {', '.join(untested)}", file=sys.stderr)
    return 0 if all(o.passed for o in outcomes) else 1


def _document(rule: Rule) -> dict[str, object]:
    from dataclasses import asdict

    document: dict[str, object] = asdict(rule)
    document.pop("series")
    return {k: v for k, v in document.items() if v not in (None, (), "")}


def _told(transitions: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{what} at {seconds} s" for what, seconds in transitions) or "nothing"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="    ")
