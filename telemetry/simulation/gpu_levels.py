"""One GPU in one second, from what its jobs do."""

from __future__ import annotations

from collections.abc import Sequence

from telemetry.simulation.hardware import MEBI, Card
from telemetry.simulation.job import Job

_IDLE_MEMORY_BYTES = 4 * MEBI
_IDLE_CLOCK_RATIO = 0.17
_IDLE_CELSIUS = 31.0
_SHARES = (
    "utilization_ratio",
    "memory_utilization_ratio",
    "throttle_thermal_ratio",
    "throttle_power_ratio",
    "throttle_power_cap_ratio",
)
_RATES = ("pcie_rx_bytes_per_second", "pcie_tx_bytes_per_second")
_LINK_RATES = ("nvlink_rx_bytes_per_second", "nvlink_tx_bytes_per_second")
_PROFILING = (
    "sm_active_ratio",
    "sm_occupancy_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
)

# A simulated card is in good health.
_ERRORS = (
    "ecc_uncorrected_errors",
    "xid_hardware_errors",
    "xid_application_errors",
    "pcie_replays_total",
)
_CODECS = ("encoder_ratio", "decoder_ratio")
# Compute capabilities of the cards with stacked memory (HBM), whose driver tells its temperature.
_STACKED = ("8.0", "9.0", "10.0")
_MEMORY_WARMER = 8.0
_ROWS = ("remapped_rows_uncorrected", "remap_pending", "remap_failed")


def gpu_row(
    card: Card, jobs: Sequence[Job], works: Sequence[bool], second: int
) -> dict[str, float]:
    """The GPU's row. Jobs on one GPU add up, each as far as the card allows.

    What the card cannot tell (NVLink without links, profiling before Hopper) is not there.
    """
    levels = [
        {
            name: pattern.at(second)
            for name, pattern in (job.working if at_work else job.waiting).items()
        }
        for job, at_work in zip(jobs, works, strict=True)
    ]

    def total(name: str) -> float:
        return sum(level.get(name, 0.0) for level in levels)

    power, clock, celsius = card.idle_watts, _IDLE_CLOCK_RATIO, _IDLE_CELSIUS
    if levels:
        power = card.held_watts + (card.power_limit_watts - card.held_watts) * min(
            1.0, total("power_ratio")
        )
        clock = max(level["clock_ratio"] for level in levels)
        celsius = max(level["temperature_celsius"] for level in levels)
    used = _IDLE_MEMORY_BYTES + sum(job.gpu_memory_bytes for job in jobs)
    row = {
        "memory_used_bytes": float(min(used, card.memory_bytes - card.reserved_bytes)),
        "memory_total_bytes": float(card.memory_bytes),
        "memory_reserved_bytes": float(card.reserved_bytes),
        "power_watts": power,
        "power_limit_watts": card.power_limit_watts,
        "temperature_celsius": celsius,
        "sm_clock_hertz": card.clock_hertz * clock,
        "memory_clock_hertz": card.memory_clock_hertz,
        "pcie_link_generation": float(card.pcie_generation),
        "pcie_link_width": 16.0,
        "process_count": float(sum(1 for job in jobs if job.visible)),
        "process_memory_bytes": float(sum(job.gpu_memory_bytes for job in jobs if job.visible)),
    }
    for name in _SHARES:
        row[name] = round(min(1.0, total(name)), 2)  # NVML tells whole percent
    for name in _RATES if card.nvlink == "none" else (*_RATES, *_LINK_RATES):
        row[name] = total(name)
    if card.compute_capability in _STACKED:
        row["memory_temperature_celsius"] = row["temperature_celsius"] + _MEMORY_WARMER
    # Rows can be remapped since Ampere (nvml.h, nvmlDeviceGetRemappedRows).
    for name in _ERRORS if float(card.compute_capability) < 8 else (*_ERRORS, *_ROWS):
        row[name] = 0.0
    for name in _CODECS:
        row[name] = 0.0
    if card.gpm:
        for name in _PROFILING:
            row[name] = min(1.0, total(name))
    return row
