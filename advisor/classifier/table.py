"""The training table: what each row's columns are, and the rows that Talla ships."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from math import log10

from advisor.errors import AdvisorError
from advisor.features import Features
from advisor.phase import Phase

SHA256 = "2fb984a2bce43cb91f4cd26a75f5c7d3c4c743bedc7a3e4396b0570e9aac4eaa"
"""Of `table.csv`: what is fitted is what was checked in."""

COLUMNS: tuple[str, ...] = (
    "duty_ratio",
    "utilization_ratio",
    "power_ratio",
    "power_peak_ratio",
    "power_trough_ratio",
    "power_deviation_ratio",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "tensor_of_sm_ratio",
    "dram_of_sm_ratio",
    "memory_ratio",
    "memory_spread_ratio",
    "pcie_log10_bytes_per_second",
    "nvlink_log10_bytes_per_second",
    "alike_gpus",
    "quiet_share",
    "alternations_per_hour",
    "log10_seconds",
)
"""What the classifier looks at, in the order of the table."""


_LONG_SECONDS = 7200
"""Longer than the table's longest stretch: how much longer says no more."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with their phases; None where a row does not have a column. The last `by_people` of
    them are not simulated.
    """

    phases: Sequence[Phase]
    rows: Sequence[Mapping[str, float | None]]
    by_people: int = 0


def encoded(features: Features) -> dict[str, float | None]:
    """The columns of one stretch of work; None for what was not read."""
    f = features
    hours = f.seconds / 3600
    return {
        "duty_ratio": f.duty_ratio,
        "utilization_ratio": f.utilization_ratio,
        "power_ratio": f.power_ratio,
        "power_peak_ratio": f.power_peak_ratio,
        "power_trough_ratio": f.power_trough_ratio,
        "power_deviation_ratio": f.power_deviation_ratio,
        "sm_active_ratio": f.sm_active_ratio,
        "tensor_active_ratio": f.tensor_active_ratio,
        "dram_active_ratio": f.dram_active_ratio,
        "tensor_of_sm_ratio": _quotient(f.tensor_active_ratio, f.sm_active_ratio),
        "dram_of_sm_ratio": _quotient(f.dram_active_ratio, f.sm_active_ratio),
        "memory_ratio": f.memory_ratio,
        "memory_spread_ratio": f.memory_spread_ratio,
        "pcie_log10_bytes_per_second": _log(f.pcie_bytes_per_second),
        "nvlink_log10_bytes_per_second": _log(f.nvlink_bytes_per_second),
        "alike_gpus": float(f.alike_gpus),
        "quiet_share": f.quiet_share,
        "alternations_per_hour": f.alternations / hours if hours else None,
        "log10_seconds": _log(min(f.seconds, _LONG_SECONDS)),
    }


def shipped() -> Table:
    """The rows of `table.csv`. Raises AdvisorError where the file was changed."""
    content = resources.files("advisor.classifier").joinpath("table.csv").read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise AdvisorError("advisor/classifier/table.csv was changed: install Talla anew")
    return parsed(content.decode())


def parsed(text: str) -> Table:
    """A table from its CSV."""
    phases: list[Phase] = []
    rows: list[Mapping[str, float | None]] = []
    for entry in csv.DictReader(text.splitlines()):
        phases.append(Phase(entry.pop("phase")))
        rows.append({name: float(cell) if cell else None for name, cell in entry.items()})
    return Table(phases, rows)


def _quotient(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _log(value: float | None) -> float | None:
    """The order of magnitude; below 1 there is nothing to tell apart."""
    return None if value is None else log10(max(1.0, value))
