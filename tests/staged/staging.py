"""Staged servers: their folders become windows, an inventory and what is expected of both."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from advisor.assess import case_of
from advisor.assessment import Period
from advisor.check import case_of_inventory
from advisor.finding import Finding
from advisor.observe import observe
from advisor.rulebook import Rulebook
from advisor.sizing.case import Case
from telemetry.inventory import GpuInfo, Inventory, Pcie
from telemetry.simulation import Scenario, Simulation, load_scenario
from telemetry.window import Key, Row, Window
from tests.staged.memory import MemoryHistory

CASES = Path(__file__).parent / "cases"
MONDAY = 1_736_121_600
DAY = 86_400
STEP = 300
WEEK_HOURS = 168


@dataclass(frozen=True)
class Hole:
    """The agent is away for the last `hours` of each `every_hours`."""

    every_hours: float
    hours: float


@dataclass(frozen=True)
class Seen:
    """What the agent could see, where that is less than all. `drawn_days` are repeated."""

    hours: float = WEEK_HOURS
    drawn_days: int = 1
    hole: Hole | None = None
    unseen: tuple[str, ...] = ()
    nvlink: bool = True
    pcie_width: int | None = None
    read_benchmark: float | None = None
    card_name: str | None = None
    means_only: bool = False
    inventory_alone: bool = False


@dataclass(frozen=True)
class Expected:
    """One row of the findings."""

    dimension: str
    verdict: str
    basis: str | None = None
    rule: str | None = None
    also: tuple[str, ...] = ()
    guide: str | None = None
    line: int | None = None
    confidence_at_most: float = 1.0
    two_answers: str | None = None

    def against(self, findings: tuple[Finding, ...]) -> list[str]:
        """What of the findings is not as expected, in words."""
        (found,) = [f for f in findings if f.dimension.value == self.dimension]
        wrong = []
        pairs = (
            ("verdict", self.verdict, found.verdict.value),
            ("basis", self.basis, found.basis and found.basis.value),
            ("rule", self.rule, found.rule),
        )
        for name, wanted, seen in pairs:
            if wanted is not None and wanted != seen:
                wrong.append(f"{self.dimension}: {name} {seen}, expected {wanted}: {found.reason}")
        missing = [rule for rule in self.also if rule not in found.rules]
        if missing:
            wrong.append(f"{self.dimension}: {missing} did not speak, only {found.rules}")
        if found.confidence > self.confidence_at_most:
            wrong.append(f"{self.dimension}: confidence {found.confidence}")
        return wrong


@dataclass(frozen=True)
class Staged:
    """One folder."""

    name: str
    scenario: Scenario
    seen: Seen = field(default_factory=Seen)
    expected: tuple[Expected, ...] = ()


def names() -> list[str]:
    """Every staged server."""
    return sorted(p.name for p in CASES.iterdir())


def load(name: str) -> Staged:
    """The staged server of a folder."""
    from pydantic import TypeAdapter

    folder = CASES / name
    document = tomllib.loads((folder / "expected.toml").read_text("utf-8"))
    unknown = set(document) - {"seen", "expect"}
    assert not unknown, f"{name}: {unknown}"
    return Staged(
        name,
        load_scenario(folder / "scenario.toml"),
        _strict(TypeAdapter(Seen), document.get("seen", {})),
        tuple(_strict(TypeAdapter(Expected), row) for row in document["expect"]),
    )


def _strict(adapter: Any, value: dict[str, Any]) -> Any:
    return adapter.validate_python(value, extra="forbid")


@cache
def case(name: str) -> Case:
    """What sizing is given of a staged server; drawn and observed once a process."""
    staged, rulebook = load(name), Rulebook.load()
    inventory = inventory_of(staged)
    if staged.seen.inventory_alone:
        return case_of_inventory(inventory, rulebook)
    history = MemoryHistory(inventory, windows(staged))
    span = history.span(inventory.host)
    assert span is not None
    return case_of(observe(history, inventory.host, Period(*span)), rulebook)


def inventory_of(staged: Staged) -> Inventory:
    """The server's inventory, less what the agent could not see of it."""
    inventory, seen = staged.scenario.inventory(), staged.seen
    gpus = list(inventory.gpus)
    if seen.pcie_width is not None:
        gpus[0] = replace(gpus[0], pcie=Pcie(5, seen.pcie_width, 5, 16, 5, 16))
    devices = tuple(
        replace(device, benchmark_bytes_per_second=seen.read_benchmark)
        for device in inventory.block_devices
    )
    return replace(inventory, gpus=tuple(_gpu(gpu, seen) for gpu in gpus), block_devices=devices)


def _gpu(gpu: GpuInfo, seen: Seen) -> GpuInfo:
    if not seen.nvlink:
        gpu = replace(gpu, nvlink_peers=())
    if seen.card_name is not None:
        gpu = replace(gpu, name=seen.card_name, pci_device_id=None, compute_capability=None)
    return gpu


def windows(staged: Staged) -> Iterator[Window]:
    """The drawn days, repeated until the hours that were seen are full."""
    seen = staged.seen
    length = seen.drawn_days * DAY
    simulation = Simulation(staged.scenario, MONDAY)
    drawn = [simulation.window(MONDAY + at) for at in range(0, length, STEP)]
    for at in range(0, round(seen.hours * 3600), STEP):
        hole = seen.hole
        if hole and at % (hole.every_hours * 3600) >= (hole.every_hours - hole.hours) * 3600:
            continue
        window = drawn[at % length // STEP]
        rows = {k: _row(k, r, seen) for k, r in window.rows.items() if k[0] not in seen.unseen}
        yield replace(window, start=MONDAY + at, rows=rows)


_KEPT_OF_MEANS = ("_max", "_min", "_zero_ratio", "_busy_ratio", "_count")


def _row(key: Key, row: Row, seen: Seen) -> Row:
    if not seen.means_only:
        return row
    values = {n: v for n, v in row.values.items() if not n.endswith(_KEPT_OF_MEANS)}
    return Row(values, row.texts)
