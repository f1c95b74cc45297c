"""One server: its GPUs beside what feeds them."""

from __future__ import annotations

from dashboards.description import Dashboard, Kind, Panel, Per, Query, Value
from dashboards.fleet import ALERTS

_GPU = "/d/talla-gpu?var-host=$host&var-gpu=${__data.fields.gpu_uuid}&${__url_time_range}"


def gpu_lines(title: str, about: str, field: str, unit: str, high: float | None = None) -> Panel:
    """One line a GPU."""
    return Panel(
        title,
        about,
        Kind.LINES,
        (Query("gpu", (Value(field),), by=("gpu_uuid",), alias="$tag_gpu_uuid"),),
        unit=unit,
        high=high,
    )


def host_lines(title: str, about: str, fields: dict[str, str], unit: str) -> Panel:
    """One line a field of the host."""
    return Panel(
        title,
        about,
        Kind.LINES,
        tuple(Query("host", (Value(field),), alias=name) for field, name in fields.items()),
        unit=unit,
        high=1 if unit == "percentunit" else None,
    )


def parts(
    title: str, about: str, measurement: str, tag: str, fields: dict[str, str], unit: str
) -> Panel:
    """One line a field and device, mount or NIC."""
    return Panel(
        title,
        about,
        Kind.LINES,
        tuple(
            Query(measurement, (Value(field),), by=(tag,), alias=f"$tag_{tag} {name}")
            for field, name in fields.items()
        ),
        unit=unit,
    )


SERVER = Dashboard(
    "talla-server",
    "Talla: server",
    "One server: the states and readings of its GPUs, and the host that feeds them.",
    windows=("10s", "5m"),
    panels=(
        (
            "GPUs",
            (
                Panel(
                    "States",
                    "What each GPU did, as the agent judged each window by itself. The advisor,"
                    " which sees the windows before and after, may know better.",
                    Kind.TIMELINE,
                    (
                        Query(
                            "gpu",
                            (Value("state", "last"),),
                            by=("gpu_uuid",),
                            alias="$tag_gpu_uuid",
                        ),
                    ),
                    low=None,
                    width=24,
                    height=9,
                ),
                Panel(
                    "GPUs",
                    "Over this time; click a GPU to open it.",
                    Kind.TABLE,
                    (
                        Query(
                            "gpu",
                            (
                                Value("utilization_ratio", "mean", "activity"),
                                Value("memory_used_bytes_max", "max", "memory_peak"),
                                Value("memory_total_bytes", "last", "memory_total"),
                                Value("power_watts", "mean", "power"),
                                Value("temperature_celsius_max", "max", "temperature_peak"),
                            ),
                            by=("gpu_uuid", "gpu_model"),
                            per=Per.RANGE,
                        ),
                    ),
                    units=(
                        ("activity", "percentunit"),
                        ("memory_peak", "bytes"),
                        ("memory_total", "bytes"),
                        ("power", "watt"),
                        ("temperature_peak", "celsius"),
                    ),
                    links=(("gpu_uuid", _GPU),),
                    width=24,
                ),
                gpu_lines(
                    "Activity",
                    "Share of time in which some kernel ran; no measure of work.",
                    "utilization_ratio",
                    "percentunit",
                    1,
                ),
                gpu_lines("Memory in use", "Device memory in use.", "memory_used_bytes", "bytes"),
                gpu_lines("Power", "Power drawn by the board.", "power_watts", "watt"),
                gpu_lines("PCIe, into the GPU", "Host to GPU.", "pcie_rx_bytes_per_second", "Bps"),
            ),
        ),
        (
            "Host",
            (
                host_lines(
                    "CPU",
                    "Processor time not idle, and idle while I/O waits.",
                    {"cpu_busy_ratio": "busy", "cpu_iowait_ratio": "waiting for I/O"},
                    "percentunit",
                ),
                host_lines(
                    "Pressure",
                    "Share of time in which a task waited (PSI).",
                    {
                        "pressure_cpu_some_ratio": "for a processor",
                        "pressure_io_some_ratio": "for I/O",
                        "pressure_memory_some_ratio": "for memory",
                    },
                    "percentunit",
                ),
                host_lines(
                    "Memory",
                    "Memory in use (total less available), total, and swap in use.",
                    {
                        "memory_used_bytes": "in use",
                        "memory_total_bytes": "total",
                        "swap_used_bytes": "swap in use",
                    },
                    "bytes",
                ),
                parts(
                    "Disks",
                    "Bytes read and written by each whole block device.",
                    "disk",
                    "device",
                    {"read_bytes_per_second": "read", "write_bytes_per_second": "written"},
                    "Bps",
                ),
                parts(
                    "Time of a read",
                    "Time that a read takes on each block device, queue included.",
                    "disk",
                    "device",
                    {"read_await_seconds": "read"},
                    "s",
                ),
                parts(
                    "Network mounts",
                    "Bytes read from the server of each mount.",
                    "mount",
                    "mount",
                    {"read_bytes_per_second": "read"},
                    "Bps",
                ),
                parts(
                    "Round trip of a read",
                    "Of each network mount.",
                    "mount",
                    "mount",
                    {"read_round_trip_seconds": "read"},
                    "s",
                ),
                parts(
                    "Network",
                    "Received and sent, as a share of the link.",
                    "nic",
                    "device",
                    {"rx_link_ratio": "received", "tx_link_ratio": "sent"},
                    "percentunit",
                ),
            ),
        ),
        (
            "Work",
            (
                Panel(
                    "Processes on the GPUs",
                    "The newest window of each; a slot is kept by a process while it lives.",
                    Kind.TABLE,
                    (
                        Query(
                            "gpu_process",
                            (
                                Value("owner", "last"),
                                Value("name", "last"),
                                Value("workload", "last"),
                                Value("memory_bytes", "last", "memory"),
                            ),
                            by=("gpu_uuid", "slot"),
                            per=Per.RANGE,
                        ),
                    ),
                    units=(("memory", "bytes"),),
                    links=(("gpu_uuid", _GPU),),
                    width=24,
                ),
                parts(
                    "KV cache",
                    "Share of each engine's KV cache that is in use: what the memory is needed"
                    " for, apart from what the engine reserved.",
                    "engine",
                    "port",
                    {"kv_cache_usage_ratio": "in use"},
                    "percentunit",
                ),
                parts(
                    "Requests",
                    "Requests that each engine serves, and that wait.",
                    "engine",
                    "port",
                    {"requests_running": "running", "requests_waiting": "waiting"},
                    "none",
                ),
            ),
        ),
        ("Alerts", (ALERTS,)),
    ),
)
