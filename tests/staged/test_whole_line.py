"""The demonstration's servers through the whole line: simulated into a store, then judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor import cli as advisor_cli
from agent import cli as agent_cli

DAYS = 8


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "verdict", "rule"),
    [
        ("chatbot", "over", "R19"),
        ("training", "under", "R34"),
        ("finetuning", "right", "R14"),
        ("chatbot_70b_l40s", "right", "R19"),
        ("training_fixed", "right", "R08"),
        ("finetuning_low_ram", "under", "R32"),
    ],
)
def test_a_simulated_server_keeps_its_verdict(
    scenario: str, verdict: str, rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "store.db")
    simulate = ["simulate", "--scenario", scenario, "--days", str(DAYS), "--store", store]
    assert agent_cli.main(simulate) == 0
    capsys.readouterr()
    assert advisor_cli.main(["findings", "--store", store, "--json"]) == 0
    overall, *rows = json.loads(capsys.readouterr().out)
    assert (overall["dimension"], overall["verdict"], overall["rule"]) == ("overall", verdict, rule)
    if scenario == "chatbot":
        (count,) = [row for row in rows if row["dimension"] == "gpu_count"]
        assert [w["gpu"] for w in count["what_if"] if w["fits"]]
        assert "kWh a week" in count["saving"]
