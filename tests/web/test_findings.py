"""The page's findings are those of the report: the same settings, the same prices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.cli import main as advisor
from advisor.web.findings import main as page_findings
from telemetry.simulation import history, load_scenario
from telemetry.store import Store

START = 1_736_208_000
PRICES = """
currency = "EUR"
source = "a test"
[[servers]]
hosts = ["*"]
billing = "hourly"
rent_per_gpu_hour = 2.0
"""


def test_the_pages_findings_follow_the_users_settings_and_prices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = load_scenario("chatbot")
    host = scenario.inventory().host
    store, config, prices = (tmp_path / name for name in ("a.db", "advisor.toml", "prices.toml"))
    with Store(store) as kept:
        kept.append(
            [w for w in history(scenario, START, 8) if w.tier == 300],
            inventories=[(float(START), host, scenario.inventory().to_json())],
        )
    prices.write_text(PRICES)
    # A statistic that the evidence names.
    config.write_text(f"prices = '{prices}'\n[sizing]\ncompute_percentile = 0.9\n")

    told: list[str] = []
    assert page_findings(["en", str(config), str(store)], told.append) == 0
    on_page = json.loads(told[0])["findings"]
    arguments = ["findings", "--json", "--store", str(store)]
    assert advisor([*arguments, "--config", str(config)]) == 0
    chosen = json.loads(capsys.readouterr().out)
    assert advisor([*arguments, "--config", str(_empty(tmp_path))]) == 0
    default = json.loads(capsys.readouterr().out)

    assert [_judged(f) for f in on_page] == [_judged(f) for f in chosen]
    assert [_judged(f) for f in on_page] != [_judged(f) for f in default]
    assert any("EUR" in str(f.get("saving")) for f in on_page)


def _judged(finding: dict[str, object]) -> tuple[object, ...]:
    return tuple(finding.get(name) for name in ("dimension", "verdict", "rule", "evidence"))


def _empty(folder: Path) -> Path:
    path = folder / "empty.toml"
    path.write_text("")
    return path
