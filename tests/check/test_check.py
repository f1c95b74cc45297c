"""Inventories and what the guides say of them: a new case is a new folder in `cases`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from advisor import cli
from advisor.check import Work, check
from advisor.finding import Dimension
from advisor.inventories import read_file
from advisor.rulebook import Rulebook
from telemetry.inventory import Workload

CASES = sorted((Path(__file__).parent / "cases").iterdir())


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_inventory_alone_gives_the_expected_findings(case: Path) -> None:
    (inventory,) = read_file(case / "inventory.json").inventories
    findings = {f.dimension.value: f for f in check(inventory, Rulebook.load())}
    expected = json.loads((case / "expected.json").read_text())["findings"]
    seen = {
        name: [f.verdict.value, f.basis.value if f.basis else None, f.rule]
        for name, f in findings.items()
    }
    assert {name: seen[name] for name in expected} == expected
    assert set(findings) == {d.value for d in Dimension}, "every dimension has its row"


def test_the_command_prints_the_documented_shape(capsys: pytest.CaptureFixture[str]) -> None:
    case = next(c for c in CASES if c.name == "bf16_on_v100")
    assert cli.main(["check", "--inventory", str(case / "inventory.json"), "--json"]) == 0
    overall, *rows = json.loads(capsys.readouterr().out)
    assert overall["dimension"] == "overall"
    assert overall["rule"] == "R51"
    assert overall["evidence"] == [
        {
            "metric": "compute_capability",
            "statistic": "inventory",
            "value": 7.0,
            "threshold": 8.0,
        }
    ]
    assert all({"host", "scope", "verdict", "reason", "confidence"} <= set(r) for r in rows)


@pytest.mark.parametrize(("count", "verdict"), [(2, "advice"), (1, "abstain"), (None, "abstain")])
def test_a_model_on_several_cards_without_nvlink_is_told(count: int | None, verdict: str) -> None:
    case = next(c for c in CASES if c.name == "narrow_link_in_a_wide_slot")
    (inventory,) = read_file(case / "inventory.json").inventories
    findings = check(inventory, Rulebook.load(), Work(gpus_of_one_model=count))
    (found,) = (f for f in findings if f.dimension is Dimension.INTERCONNECT)
    assert found.verdict.value == verdict


def test_a_declared_model_on_several_cards_without_nvlink_is_told() -> None:
    case = next(c for c in CASES if c.name == "narrow_link_in_a_wide_slot")
    (inventory,) = read_file(case / "inventory.json").inventories
    work = Workload(phase="llm_inference", model="Llama-3.1-70B-Instruct", gpus=(0, 1))
    findings = check(replace(inventory, workloads=(work,)), Rulebook.load())
    (found,) = (f for f in findings if f.dimension is Dimension.INTERCONNECT)
    assert found.verdict.value == "advice"


@pytest.mark.parametrize(
    ("name", "told"), [("narrow_link_in_a_wide_slot", True), ("narrow_slot_for_a_wide_card", False)]
)
def test_a_link_below_what_its_slot_allows_is_told_apart(name: str, told: bool) -> None:
    case = next(c for c in CASES if c.name == name)
    (inventory,) = read_file(case / "inventory.json").inventories
    (found,) = (f for f in check(inventory, Rulebook.load()) if f.dimension is Dimension.PCIE)
    assert ("GPU 1 runs on 4 PCIe lanes of the 16" in str(found.to_json()["reason"])) is told
