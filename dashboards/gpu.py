"""One GPU: what it did, and what held it back."""

from __future__ import annotations

from dashboards.description import Dashboard, Kind, Panel, Per, Query, Value
from dashboards.states import hours_by_state


def lines(title: str, about: str, fields: dict[str, str], unit: str) -> Panel:
    """One line a field of the GPU."""
    return Panel(
        title,
        about,
        Kind.LINES,
        tuple(
            Query("gpu", (Value(field),), by=("gpu_uuid",), gpu=True, alias=name)
            for field, name in fields.items()
        ),
        unit=unit,
        high=1 if unit == "percentunit" else None,
    )


GPU = Dashboard(
    "talla-gpu",
    "Talla: GPU",
    "One GPU: activity, memory, power, links, and what waited while it did.",
    windows=("10s", "5m"),
    gpu=True,
    panels=(
        (
            "What it did",
            (
                Panel(
                    "State",
                    "As the agent judged each window by itself.",
                    Kind.TIMELINE,
                    (
                        Query(
                            "gpu",
                            (Value("state", "last"),),
                            by=("gpu_uuid",),
                            gpu=True,
                            alias="$tag_gpu_uuid",
                        ),
                    ),
                    low=None,
                    width=16,
                    height=6,
                ),
                Panel(
                    "Hours by state",
                    "Over this time, from 5-minute windows.",
                    Kind.STAT,
                    hours_by_state(Per.RANGE, gpu=True),
                    unit="h",
                    width=8,
                    height=6,
                ),
                lines(
                    "Activity",
                    "Some kernel ran; and, where the card tells, how much of its multiprocessors,"
                    " tensor pipes and memory interface was active.",
                    {
                        "utilization_ratio": "some kernel ran",
                        "sm_active_ratio": "SM active",
                        "tensor_active_ratio": "tensor active",
                        "dram_active_ratio": "DRAM active",
                    },
                    "percentunit",
                ),
                lines(
                    "Memory",
                    "In use, at most within each window, and the card's.",
                    {
                        "memory_used_bytes": "in use",
                        "memory_used_bytes_max": "peak",
                        "memory_total_bytes": "of the card",
                    },
                    "bytes",
                ),
                lines(
                    "Power",
                    "Drawn by the board, and its enforced limit.",
                    {"power_watts": "drawn", "power_limit_watts": "limit"},
                    "watt",
                ),
                lines(
                    "Temperature",
                    "Of the GPU.",
                    {"temperature_celsius": "mean", "temperature_celsius_max": "peak"},
                    "celsius",
                ),
                lines(
                    "Clocks",
                    "Of multiprocessors and memory.",
                    {"sm_clock_hertz": "SM", "memory_clock_hertz": "memory"},
                    "hertz",
                ),
                lines(
                    "PCIe",
                    "Bytes into and out of the GPU.",
                    {
                        "pcie_rx_bytes_per_second": "into the GPU",
                        "pcie_tx_bytes_per_second": "out of the GPU",
                    },
                    "Bps",
                ),
                lines(
                    "NVLink",
                    "Bytes in and out.",
                    {
                        "nvlink_rx_bytes_per_second": "in",
                        "nvlink_tx_bytes_per_second": "out",
                    },
                    "Bps",
                ),
                lines(
                    "PCIe link",
                    "Best generation and widest link within each window; a card lowers them while"
                    " it idles.",
                    {"pcie_link_generation": "generation", "pcie_link_width": "lanes"},
                    "none",
                ),
            ),
        ),
        (
            "What held it back",
            (
                lines(
                    "Slowed down",
                    "Share of time slowed by heat, by a power brake, or at the software power cap"
                    " (ordinary under full load).",
                    {
                        "throttle_thermal_ratio": "heat",
                        "throttle_power_ratio": "power brake",
                        "throttle_power_cap_ratio": "power cap",
                    },
                    "percentunit",
                ),
                lines(
                    "Gaps",
                    "Share of seconds in which the GPU was mostly not at work, and of those that"
                    " coincide with a signal of the host.",
                    {
                        "gap_ratio": "all gaps",
                        "gap_io_pressure_ratio": "with I/O pressure",
                        "gap_mount_ratio": "with slow mounts",
                        "gap_device_ratio": "with slow disks",
                        "gap_cpu_ratio": "with busy processors",
                        "gap_memory_ratio": "with memory pressure",
                    },
                    "percentunit",
                ),
                lines(
                    "What its job read and wrote",
                    "Bytes that the GPU's processes and their workers read from and wrote to"
                    " storage.",
                    {
                        "job_read_bytes_per_second": "read",
                        "job_write_bytes_per_second": "written",
                    },
                    "Bps",
                ),
                Panel(
                    "Processes",
                    "The newest window of each slot.",
                    Kind.TABLE,
                    (
                        Query(
                            "gpu_process",
                            (
                                Value("owner", "last"),
                                Value("name", "last"),
                                Value("workload", "last"),
                                Value("memory_bytes", "last", "memory"),
                                Value("cpu_cores", "mean"),
                            ),
                            by=("slot",),
                            per=Per.RANGE,
                            gpu=True,
                        ),
                    ),
                    units=(("memory", "bytes"),),
                ),
            ),
        ),
    ),
)
