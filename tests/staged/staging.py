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
from telemetry.inventory import GpuInfo, Inventory, MigInstance, Pcie
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
    """What the agent could see, where that is less than all.

    `drawn_days` are repeated, with `repeat_last` the last of them alone. `mig`: each card is one
    slice of half its memory, which tells its activity but no utilisation.
    """

    hours: float = WEEK_HOURS
    drawn_days: int = 1
    repeat_last: bool = False
    hole: Hole | None = None
    unseen: tuple[str, ...] = ()
    unseen_ports: tuple[str, ...] = ()
    lost_card: int | None = None
    mig: bool = False
    power_limit_watts: float | None = None
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
    says: str | None = None
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
        if self.says is not None and self.says not in str(found.reason):
            wrong.append(f"{self.dimension}: says not {self.says!r}: {found.reason}")
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
    if seen.power_limit_watts is not None:
        gpu = replace(gpu, power_limit_watts=seen.power_limit_watts)
    if seen.mig and gpu.memory_bytes is not None:
        gpu = replace(gpu, mig=(MigInstance(1, 0, "3g.40gb", gpu.memory_bytes // 2),))
    return gpu


def windows(staged: Staged) -> Iterator[Window]:
    """The drawn days, repeated until the hours that were seen are full."""
    seen = staged.seen
    length = seen.drawn_days * DAY
    simulation = Simulation(staged.scenario, MONDAY)
    drawn = [simulation.window(MONDAY + at) for at in range(0, length, STEP)]
    lost = () if seen.lost_card is None else (staged.scenario.server.gpus[seen.lost_card].uuid,)
    for at in range(0, round(seen.hours * 3600), STEP):
        hole = seen.hole
        if hole and at % (hole.every_hours * 3600) >= (hole.every_hours - hole.hours) * 3600:
            continue
        turn = at % length
        if seen.repeat_last and at >= length:
            turn = length - DAY + at % DAY
        window = drawn[turn // STEP]
        rows = dict(
            _seen_row(k, r, seen)
            for k, r in window.rows.items()
            if k[0] not in seen.unseen
            and not (k[0] == "engine" and k[1] in seen.unseen_ports)
            and not (lost and k[1:2] == lost)
        )
        yield replace(window, start=MONDAY + at, rows=rows)


_NOT_OF_A_SLICE = ("utilization_ratio", "memory_utilization_ratio", "power_", "pcie_")
_KEPT_OF_MEANS = ("_max", "_min", "_zero_ratio", "_busy_ratio", "_count")


def _seen_row(key: Key, row: Row, seen: Seen) -> tuple[Key, Row]:
    values, texts = dict(row.values), row.texts
    if seen.means_only:
        values = {n: v for n, v in values.items() if not n.endswith(_KEPT_OF_MEANS)}
    if seen.power_limit_watts is not None and key[0] == "gpu":
        limit = seen.power_limit_watts
        watts = {n: min(v, limit) for n, v in values.items() if n.startswith("power_")}
        values |= watts
    if seen.mig and key[0] in ("gpu", "gpu_process"):
        key = (key[0], f"{key[1]}/1/0", *key[2:])
        values = {n: v for n, v in values.items() if not n.startswith(_NOT_OF_A_SLICE)}
        if "memory_total_bytes" in values:
            values["memory_total_bytes"] = values["memory_total_bytes"] / 2
        for name in ("memory_used_bytes", "memory_used_bytes_min", "memory_used_bytes_max"):
            if name in values:
                values[name] = values[name] / 2
    if seen.mig and "gpu_uuids" in texts:
        slices = (f"{uuid}/1/0" for uuid in texts["gpu_uuids"].replace(",", " ").split())
        texts = {**texts, "gpu_uuids": " ".join(slices)}
    return key, Row(values, texts)
