"""A real loader on a real slow medium, the agent beside it: the advisor names cause and place.

The GPU alone is a fake: its readings follow what the loader really brings. See `scenarios.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.staging.scenarios import SCENARIOS, Scenario
from tests.staging.stage import staged

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def hours(store: Path) -> dict[str, Any]:
    """What `talla-advisor hours` says of the one GPU."""
    command = [sys.executable, "-m", "advisor.cli", "hours", "--json", "--store", str(store)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (gpu,) = json.loads(done.stdout)
    assert isinstance(gpu, dict)
    return gpu


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_cause_of_waiting_is_named(scenario: Scenario, fakenvml: Path, tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        run, place = scenario.play(stage, fakenvml)
    told = hours(run.server.store)
    total = sum(told["hours"].values())
    lost = told["lost_hours"] / total
    print(f"\n{scenario.name}: {lost:.2f} of the time lost, in truth {run.lost_ratio:.2f}")
    print(json.dumps(told["losses"], indent=1))
    if scenario.cause is None:
        assert set(told["hours"]) == {"busy"}
        assert told["losses"] == []
        return
    # The first and the last window may be cut too short for a verdict.
    assert told["hours"]["starved"] >= 0.8 * total
    assert set(told["causes"]) == {scenario.cause}
    # What is lost within seconds of half work and more is not always told.
    assert 0.1 <= lost <= run.lost_ratio + 0.1
    first = told["losses"][0]
    assert (first["state"], first["cause"]) == ("starved", scenario.cause)
    assert first.get("place") == place
