"""Many servers in several processes: the same answers as one by one."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import pytest

from advisor import fleet
from advisor.assess import assess_all
from advisor.commands.reading import open_reading
from telemetry.simulation import history, load_scenario
from telemetry.store import Store

START = 1_700_006_400


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet") / "s.db"
    scenario = load_scenario("vision")
    windows = [w for w in history(scenario, START, 1.2) if w.tier == 300]
    with Store(path) as store:
        for number in range(fleet.FLEET_HOSTS):
            host = f"node-{number}"
            store.append(dataclasses.replace(w, host=host) for w in windows)
            document = {**scenario.inventory().to_json(), "host": host}
            store.append(inventories=[(START, host, document)])
    return path


def test_a_fleet_gets_the_answers_of_its_servers(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_reading(argparse.Namespace(store=[store], config=None)) as reading:
        together = list(assess_all(reading))
        monkeypatch.setattr("advisor.assess.FLEET_HOSTS", 100)
        one_by_one = [fleet.slim(assessment) for assessment in assess_all(reading)]
    assert [a.host for a in together] == [f"node-{n}" for n in range(fleet.FLEET_HOSTS)]
    assert together == one_by_one
    assert all(a.findings and a.observations is not None for a in together)
    for assessment in together:
        assert assessment.observations is not None
        for timeline in assessment.observations.gpus.values():
            assert "utilization_ratio" in timeline.frame.columns
            assert len(timeline.states) == len(timeline.frame) > 300
