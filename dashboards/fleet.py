"""All servers: who works, who waits, what is wrong."""

from __future__ import annotations

from dashboards.description import Dashboard, Kind, Panel, Per, Query, Value
from dashboards.states import hours_by_state

_SERVER = "/d/talla-server?var-host=${__data.fields.host}&${__url_time_range}"

ALERTS = Panel(
    "Alerts",
    "Transitions of alerts in this time, the newest first: raised 1 begins one, 0 ends it.",
    Kind.TABLE,
    (
        Query(
            "event",
            tuple(Value(n, "raw") for n in ("raised", "severity", "text")),
            by=("host", "rule", "gpu_uuid"),
            where=(("kind", "alert"),),
            per=Per.POINT,
            window=None,
            limit=200,
        ),
    ),
    links=(("host", _SERVER),),
    width=24,
    height=9,
)

FLEET = Dashboard(
    "talla-fleet",
    "Talla: fleet",
    "Every server that ships to this InfluxDB: what its GPUs do, and what is wrong.",
    windows=(),
    since="now-24h",
    panels=(
        (
            "Now",
            (
                Panel(
                    "Servers",
                    "Servers that sent a 5-minute window in this time.",
                    Kind.STAT,
                    (
                        Query(
                            "host",
                            (Value("covered_seconds", "last"),),
                            by=("host",),
                            per=Per.RANGE,
                            window="5m",
                        ),
                    ),
                    reduce="count",
                    width=4,
                    height=4,
                ),
                Panel(
                    "GPUs",
                    "GPUs and MIG instances that sent a 5-minute window in this time.",
                    Kind.STAT,
                    (
                        Query(
                            "gpu",
                            (Value("covered_seconds", "last"),),
                            by=("host", "gpu_uuid"),
                            per=Per.RANGE,
                            window="5m",
                        ),
                    ),
                    reduce="count",
                    width=4,
                    height=4,
                ),
                Panel(
                    "GPU activity",
                    "Mean over all GPUs and this time of the share of time in which some kernel"
                    " ran. It is no measure of work.",
                    Kind.STAT,
                    (
                        Query(
                            "gpu",
                            (Value("utilization_ratio"),),
                            per=Per.RANGE,
                            window="5m",
                        ),
                    ),
                    unit="percentunit",
                    high=1,
                    width=4,
                    height=4,
                ),
                Panel(
                    "GPU power",
                    "Mean of one GPU over this time.",
                    Kind.STAT,
                    (Query("gpu", (Value("power_watts"),), per=Per.RANGE, window="5m"),),
                    unit="watt",
                    width=4,
                    height=4,
                ),
                Panel(
                    "GPU-hours by state",
                    "Where the hours of all GPUs went in this time.",
                    Kind.STAT,
                    hours_by_state(Per.RANGE),
                    unit="h",
                    width=8,
                    height=4,
                ),
            ),
        ),
        (
            "Servers",
            (
                Panel(
                    "Servers",
                    "Means over this time, of 5-minute windows; click a server to open it.",
                    Kind.TABLE,
                    (
                        Query(
                            "gpu",
                            (
                                Value("utilization_ratio", "mean", "activity"),
                                Value("utilization_ratio_max", "max", "peak"),
                                Value("memory_used_bytes", "mean", "memory"),
                                Value("memory_used_bytes_max", "max", "memory_peak"),
                                Value("power_watts", "mean", "power"),
                            ),
                            by=("host",),
                            per=Per.RANGE,
                            window="5m",
                        ),
                    ),
                    units=(
                        ("activity", "percentunit"),
                        ("peak", "percentunit"),
                        ("memory", "bytes"),
                        ("memory_peak", "bytes"),
                        ("power", "watt"),
                    ),
                    links=(("host", _SERVER),),
                    width=24,
                    height=9,
                ),
                Panel(
                    "GPU-hours by state",
                    "Each bar is the hours of all GPUs in that stretch of time, by state.",
                    Kind.BARS,
                    hours_by_state(Per.INTERVAL),
                    unit="h",
                    width=24,
                ),
                Panel(
                    "GPU activity by server",
                    "Mean over a server's GPUs.",
                    Kind.LINES,
                    (
                        Query(
                            "gpu",
                            (Value("utilization_ratio"),),
                            by=("host",),
                            window="5m",
                            alias="$tag_host",
                        ),
                    ),
                    unit="percentunit",
                    high=1,
                ),
                Panel(
                    "I/O pressure by server",
                    "Share of time in which a task waited for I/O (PSI). Pressure alone is no"
                    " starvation: the GPU's state says whether it waited.",
                    Kind.LINES,
                    (
                        Query(
                            "host",
                            (Value("pressure_io_some_ratio"),),
                            by=("host",),
                            window="5m",
                            alias="$tag_host",
                        ),
                    ),
                    unit="percentunit",
                    high=1,
                ),
            ),
        ),
        ("Alerts", (ALERTS,)),
    ),
)
