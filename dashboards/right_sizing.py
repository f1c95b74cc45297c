"""What the hardware was used for, over weeks: the figures that a verdict rests on."""

from __future__ import annotations

from dashboards.description import Dashboard, Kind, Panel, Per, Query, Value
from dashboards.states import hours_by_cause, hours_by_state

_SERVER = "/d/talla-server?var-host=${__data.fields.host}"
_GPU = "/d/talla-gpu?var-host=${__data.fields.host}&var-gpu=${__data.fields.gpu_uuid}"
_NOTE = """\
**Verdicts are not in InfluxDB.** The agents ship what was seen; whether a server is too big or too
small is told by `talla-advisor report` and `talla-advisor findings`, with the rule and the
evidence. This page shows the figures that such a verdict rests on, from 5-minute windows.

Memory in use is not memory needed: inference engines and JAX take the card at start. Where an
engine tells the use of its KV cache, that is what the memory is needed for.
"""

RIGHT_SIZING = Dashboard(
    "talla-right-sizing",
    "Talla: right-sizing",
    "What the hardware was used for over weeks, from 5-minute windows.",
    since="now-28d",
    refresh="",
    panels=(
        (
            "Where the hours went",
            (
                Panel("How to read this", "", Kind.TEXT, text=_NOTE, width=8, height=8),
                Panel(
                    "GPU-hours by state",
                    "Of the chosen servers, over this time.",
                    Kind.STAT,
                    hours_by_state(Per.RANGE),
                    unit="h",
                    width=8,
                ),
                Panel(
                    "GPU-hours kept waiting, by cause",
                    "Hours of windows in which a live job computed less than it could.",
                    Kind.STAT,
                    hours_by_cause(Per.RANGE),
                    unit="h",
                    marks=((0.01, "#d55e00"),),
                    width=8,
                ),
                Panel(
                    "GPU-hours by state, over time",
                    "Each bar is the hours of all chosen GPUs in that stretch of time.",
                    Kind.BARS,
                    hours_by_state(Per.INTERVAL),
                    unit="h",
                    width=24,
                ),
            ),
        ),
        (
            "What was used of what is there",
            (
                Panel(
                    "GPUs",
                    "`activity_p95` is the 95th percentile of 5-minute means, peaks are maxima of"
                    " 1-second samples. `lost` is the mean share of time without a kernel within"
                    " seconds that were mostly gaps.",
                    Kind.TABLE,
                    (
                        Query(
                            "gpu",
                            (
                                Value("utilization_ratio", "mean", "activity"),
                                Value("utilization_ratio", "percentile_95", "activity_p95"),
                                Value("memory_used_bytes_max", "max", "memory_peak"),
                                Value("memory_total_bytes", "last", "memory_total"),
                                Value("power_watts", "percentile_95", "power_p95"),
                                Value("gap_lost_ratio", "mean", "lost"),
                            ),
                            by=("host", "gpu_uuid", "gpu_model"),
                            per=Per.RANGE,
                            window="5m",
                        ),
                    ),
                    units=(
                        ("activity", "percentunit"),
                        ("activity_p95", "percentunit"),
                        ("memory_peak", "bytes"),
                        ("memory_total", "bytes"),
                        ("power_p95", "watt"),
                        ("lost", "percentunit"),
                    ),
                    links=(
                        ("host", _SERVER),
                        ("gpu_uuid", _GPU),
                    ),
                    width=24,
                    height=10,
                ),
                Panel(
                    "Hosts",
                    "Processors and memory: 95th percentiles of 5-minute means, and peaks.",
                    Kind.TABLE,
                    (
                        Query(
                            "host",
                            (
                                Value("cpu_busy_ratio", "percentile_95", "cpu_p95"),
                                Value("memory_used_bytes_max", "max", "memory_peak"),
                                Value("memory_total_bytes", "last", "memory_total"),
                                Value("swap_used_bytes", "max", "swap_peak"),
                                Value("pressure_io_some_ratio", "percentile_95", "io_pressure_p95"),
                            ),
                            by=("host",),
                            per=Per.RANGE,
                            window="5m",
                        ),
                    ),
                    units=(
                        ("cpu_p95", "percentunit"),
                        ("memory_peak", "bytes"),
                        ("memory_total", "bytes"),
                        ("swap_peak", "bytes"),
                        ("io_pressure_p95", "percentunit"),
                    ),
                    links=(("host", _SERVER),),
                ),
                Panel(
                    "Inference engines",
                    "Peak use of the KV cache and its size: what an engine needed of what it took.",
                    Kind.TABLE,
                    (
                        Query(
                            "engine",
                            (
                                Value("kv_cache_usage_ratio_max", "max", "kv_cache_peak"),
                                Value("kv_cache_bytes", "last", "kv_cache"),
                                Value("requests_waiting_max", "max", "waiting_peak"),
                            ),
                            by=("host", "port"),
                            per=Per.RANGE,
                            window="5m",
                        ),
                    ),
                    units=(("kv_cache_peak", "percentunit"), ("kv_cache", "bytes")),
                ),
                Panel(
                    "Links and disks",
                    "Peaks of the network links, as a share of each.",
                    Kind.TABLE,
                    (
                        Query(
                            "nic",
                            (
                                Value("rx_link_ratio_max", "max", "received_peak"),
                                Value("tx_link_ratio_max", "max", "sent_peak"),
                            ),
                            by=("host", "device"),
                            per=Per.RANGE,
                            window="5m",
                        ),
                    ),
                    units=(("received_peak", "percentunit"), ("sent_peak", "percentunit")),
                ),
                Panel(
                    "PCIe",
                    "Peak rates of each GPU, and the best link that it had.",
                    Kind.TABLE,
                    (
                        Query(
                            "gpu",
                            (
                                Value("pcie_rx_bytes_per_second_max", "max", "in_peak"),
                                Value("pcie_tx_bytes_per_second_max", "max", "out_peak"),
                                Value("pcie_link_generation", "max", "generation"),
                                Value("pcie_link_width", "max", "lanes"),
                            ),
                            by=("host", "gpu_uuid"),
                            per=Per.RANGE,
                            window="5m",
                        ),
                    ),
                    units=(("in_peak", "Bps"), ("out_peak", "Bps")),
                ),
            ),
        ),
    ),
)
