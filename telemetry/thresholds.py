"""The thresholds of `states.toml`, by name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Levels by which windows become states; ratios 0..1, else the unit in the name."""

    coverage_ratio: float
    idle_utilization_ratio: float
    blip_zero_ratio: float
    idle_pcie_bytes_per_second: float
    held_ratio: float
    held_bytes: float
    growth_bytes: float
    loading_read_bytes_per_second: float
    orphan_seconds: float
    idle_power_percentile: float
    idle_power_limit_ratio: float
    working_power_share: float
    busy_utilization_ratio: float
    zero_activity_ratio: float
    stuck_utilization_ratio: float
    stuck_power_share: float
    stuck_power_limit_ratio: float
    stuck_pcie_bytes_per_second: float
    stuck_sm_active_ratio: float
    stuck_tensor_active_ratio: float
    stuck_seconds: float
    throttled_ratio: float
    pcie_link_ratio: float
    pcie_sm_active_ratio: float
    exchange_bytes_per_second: float
    exchange_balance_ratio: float
    open_ratio: float
    lost_ratio: float
    signal_given_gap: float
    signal_lift: float
    gap_free_ratio: float
    steady_ratio: float
    waiting_ratio: float
    unknown_kind_busy_ratio: float
    unknown_kind_seconds: float
    job_processor_share: float
    mount_read_bytes_per_second: float
    network_file_systems: frozenset[str]
    local_fuse_file_systems: frozenset[str]

    @classmethod
    def load(cls) -> Thresholds:
        """The thresholds that Talla ships (`states.toml`)."""
        text = resources.files("telemetry").joinpath("states.toml").read_text("utf-8")
        return cls.parse(tomllib.loads(text))

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Thresholds:
        """Thresholds from their TOML table.

        Raises ValueError where a threshold is missing, unknown or without a source.
        """
        values: dict[str, Any] = {}
        for entry in data["threshold"]:
            if not entry["source"]:
                raise ValueError(f"states.toml: {entry['name']} has no source")
            values[entry["name"]] = float(entry["value"])
        values["network_file_systems"] = frozenset(data["file_systems"]["network"])
        values["local_fuse_file_systems"] = frozenset(data["file_systems"]["local_fuse"])
        wanted = {field.name for field in fields(cls)}
        if wanted != set(values):
            odd = ", ".join(sorted(wanted ^ set(values)))
            raise ValueError(f"states.toml: missing or unknown: {odd}")
        return cls(**values)
