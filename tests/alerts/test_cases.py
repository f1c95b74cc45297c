"""False alarms over awkward healthy work and real runs; detection of each staged trouble."""

from __future__ import annotations

from pathlib import Path

import pytest

from telemetry.store import StoreReader
from telemetry.window import Window
from tests.alerts.cases import Case, healthy
from tests.alerts.staged import BOOK, Told, judged, windows_of
from tests.alerts.troubles import troubles

# A trouble is told within its rule's own duration and a window of its tier, and where memory must
# be seen to grow, the half hour that this takes. A backlog must grow to an hour's first.
ALLOWED = {"gpu_memory_filling": 6000.0, "collector_silent": 330.0, "shipping_backlog": 4300.0}


SHORT = 2700.0
"""Longer than what memory may be held idly; the proof page runs each case to its end."""


@pytest.mark.parametrize("case", healthy(), ids=lambda case: case.name)
def test_healthy_work_raises_nothing(case: Case) -> None:
    assert [t.rule for t in judged(windows_of(case.samples(SHORT))) if t.raised] == []


@pytest.mark.parametrize("case", troubles(), ids=lambda case: case.rule)
def test_a_trouble_is_told_once_by_its_rule_alone_and_soon(case: Case) -> None:
    rule = next(r for r in BOOK.rules if r.name == case.rule)
    allowed = ALLOWED.get(rule.name, rule.raise_seconds + 2 * rule.tier + 120)
    samples = case.samples(case.onset + allowed + 300)
    raised = [t for t in judged(windows_of(samples)) if t.raised]
    assert [t.rule for t in raised] == [case.rule]
    after = raised[0].at - case.onset
    assert 0 < after <= allowed


def test_every_rule_has_a_staged_trouble_but_those_that_are_told_elsewhere() -> None:
    elsewhere = {
        "host_idle",  # a day: the simulated mixed server, and its series
        "gpus_missing",  # test_watch.py
        "gpu_xid_program",  # info, as gpu_xid
    }
    assert {rule.name for rule in BOOK.rules} - {c.rule for c in troubles()} == elsewhere


def imported(trace: Path, folder: Path) -> list[Window]:
    """The windows that the importer makes of a recording, in order of time."""
    from advisor.cli import main

    store = folder / "trace.db"
    assert main(["import", str(trace), "--store", str(store), "--host", "traced"]) == 0
    with StoreReader(store) as reader:
        windows: list[Window] = []
        at = 0
        while some := reader.windows_after(at, 500):
            windows += [window for _, window in some]
            at = some[-1][0]
    return sorted(windows, key=lambda w: (w.end, w.tier))


def told_of(trace: Path, folder: Path) -> tuple[int, list[Told]]:
    """How many 10-second windows a recording has, and what the rules say of it."""
    windows = imported(trace, folder)
    return sum(w.tier == 10 for w in windows), judged(windows, None)


def test_real_runs_raise_no_warning(traces: Path, tmp_path: Path) -> None:
    for trace in sorted(traces.glob("*.csv")):
        folder = tmp_path / trace.stem
        folder.mkdir()
        count, told = told_of(trace, folder)
        assert count > 10, trace.name
        assert [(trace.name, t.rule) for t in told if t.raised and t.serious] == []
