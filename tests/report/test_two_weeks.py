"""Two simulated weeks: eight cards for a chatbot, then two, as the first report advised.

The history is made second by second only at its end, and judged from a real store by the command.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from advisor.cli import main
from telemetry.simulation import history, load_scenario
from telemetry.simulation.scenario import Scenario
from telemetry.store import Store

START = 1_772_409_600  # Mon 2 Mar 2026, 00:00 UTC
WEEK = 7 * 86_400


def _fewer(folder: Path) -> Scenario:
    """The chatbot on two of its cards: one that it needs, and the spare that was declared."""
    scenarios = resources.files("telemetry.simulation").joinpath("scenarios")
    text = scenarios.joinpath("chatbot.toml").read_text("utf-8")
    for then, now in (
        ("count = 8", "count = 2"),
        ("--tensor-parallel-size 8", "--tensor-parallel-size 2"),
        ("busy_ratio = 0.17", "busy_ratio = 0.5"),
        ("power_feed_watts", 'redundancy = "N+1"\npower_feed_watts'),
    ):
        assert then in text
        text = text.replace(then, now)
    path = folder / "fewer.toml"
    path.write_text(text, "utf-8")
    return load_scenario(str(path))


@pytest.mark.long
def test_the_second_report_says_that_the_first_was_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, state = tmp_path / "store.db", tmp_path / "advisor.db"
    for number, scenario in enumerate((load_scenario("chatbot"), _fewer(tmp_path))):
        begin = START + number * WEEK
        with Store(store) as kept:
            inventory = scenario.inventory()
            kept.append(inventories=[(float(begin), inventory.host, inventory.to_json())])
            kept.append(list(history(scenario, begin, 7)))
        out = tmp_path / f"week-{number + 1}"
        command = ["report", "--store", str(store), "--state", str(state), "-o", str(out)]
        assert main([*command, "--format", "html,md,json"]) == 0
    capsys.readouterr()
    first, second = ((tmp_path / f"week-{n}" / "report.md").read_text("utf-8") for n in (1, 2))
    assert "**1** too big: chatbot" in first
    assert "Serve this load from 1 H100 80GB HBM3" in first
    assert "Since the last report" not in first
    assert "**1** fits: chatbot" in second
    assert "- The server as a whole: too big → **fits**" in second
    assert "8 × NVIDIA H100 80GB HBM3 → **2 × NVIDIA H100 80GB HBM3**" in second
    assert "- **followed** (Number of GPUs): Serve this load from 1 H100 80GB HBM3" in second
    assert "It was 8 GPUs; it is 2 GPUs." in second
    document = json.loads((tmp_path / "week-2" / "report.json").read_text("utf-8"))
    # The six cards that were taken out have no hours in the second week.
    assert round(sum(document["summary"]["gpu_hours"].values())) == 2 * 168
