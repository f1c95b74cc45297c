"""Logs as people have them: a new case is a new folder in `cases`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from telemetry.store import StoreReader
from telemetry.window import Window
from tests.importers.golden import Outcome, expected_of, run_import, windows_of

CASES = sorted((Path(__file__).parent / "cases").iterdir())


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_log_gives_the_expected_windows(case: Path, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    outcome = run_import(case, store)
    expected = expected_of(case)
    assert outcome.code == expected["exit"], outcome.error
    for part in expected.get("output", ()):
        assert part in outcome.output
    for part in expected.get("error", ()):
        assert part in outcome.error
    if expected["exit"] != 0:
        assert not store.exists(), "nothing is left where nothing could be imported"
        assert len(outcome.error.strip().splitlines()) == 1
        return
    _check_windows(outcome, expected)
    _check_rows(outcome.windows, expected)
    with StoreReader(store) as reader:
        for host, inventory in expected.get("inventory", {}).items():
            kept = reader.inventory(host)
            assert kept is not None
            assert {name: kept.get(name) for name in inventory} == inventory


@pytest.mark.parametrize(
    "case", [c for c in CASES if expected_of(c)["exit"] == 0], ids=lambda c: c.name
)
def test_importing_again_changes_nothing(case: Path, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    first = run_import(case, store)
    again = run_import(case, store)
    assert again.code == 0
    assert again.windows == first.windows
    assert " 0 new windows" in again.output


def _check_windows(outcome: Outcome, expected: dict[str, Any]) -> None:
    counted: dict[str, dict[str, int]] = {}
    for window in outcome.windows:
        tiers = counted.setdefault(window.host, {})
        tiers[str(window.tier)] = tiers.get(str(window.tier), 0) + 1
    assert counted == expected["windows"]


def _check_rows(windows: list[Window], expected: dict[str, Any]) -> None:
    for host, places in expected["rows"].items():
        long = [w for w in windows if w.host == host and w.tier == 300]
        for place, rows in places.items():
            window = long[int(place)]
            for key, fields in rows.items():
                if key in ("start", "seconds"):
                    assert getattr(window, key) == fields, (host, place, key)
                    continue
                row = window.rows.get(tuple(key.split("|")))
                if fields is None:
                    assert row is None, (host, place, key)
                    continue
                assert row is not None, (host, place, key, list(window.rows))
                for name, value in fields.items():
                    where = (host, place, key, name)
                    if value is None:
                        assert name not in row.values, where
                        assert name not in row.texts, where
                    elif isinstance(value, str):
                        assert row.texts.get(name) == value, where
                    else:
                        assert row.values.get(name) == pytest.approx(value, rel=1e-3), where


def test_windows_are_read_back_in_order(tmp_path: Path) -> None:
    assert windows_of(tmp_path / "none.db") == []
