"""Whether the agents themselves are well, and what they cost."""

from __future__ import annotations

from dashboards.description import Dashboard, Kind, Panel, Per, Query, Value


def lines(
    title: str,
    about: str,
    values: dict[str, Value],
    unit: str,
    marks: tuple[tuple[float, str], ...] = (),
) -> Panel:
    """One line a host and value."""
    return Panel(
        title,
        about,
        Kind.LINES,
        tuple(
            Query("agent", (value,), by=("host",), alias=f"$tag_host {name}".strip())
            for name, value in values.items()
        ),
        unit=unit,
        marks=marks,
    )


AGENT_HEALTH = Dashboard(
    "talla-agent-health",
    "Talla: agents' health",
    "Whether each agent samples and ships, and what it costs.",
    windows=("10s", "5m"),
    panels=(
        (
            "Sampling",
            (
                Panel(
                    "Agents",
                    "The newest window of each in this time.",
                    Kind.TABLE,
                    (
                        Query(
                            "agent",
                            (
                                Value("version", "last"),
                                Value("gpu_library", "last"),
                                Value("missed_ticks_total", "last"),
                                Value("collect_errors_total", "last"),
                            ),
                            by=("host",),
                            per=Per.RANGE,
                        ),
                    ),
                    links=(("host", "/d/talla-server?var-host=${__data.fields.host}"),),
                    width=24,
                ),
                lines(
                    "Time of a tick",
                    "From due time to sample kept; the slowest of each window beside the mean.",
                    {
                        "mean": Value("tick_seconds"),
                        "slowest": Value("tick_seconds_max", "max"),
                    },
                    "s",
                    marks=((0.5, "#e6a817"), (1.0, "#d55e00")),
                ),
                lines(
                    "Age of the newest sample",
                    "Of GPUs and host: above a few seconds a collector is silent.",
                    {
                        "GPU": Value("gpu_sample_age_seconds", "max"),
                        "host": Value("host_sample_age_seconds", "max"),
                    },
                    "s",
                    marks=((10, "#e6a817"), (60, "#d55e00")),
                ),
                lines(
                    "Missed ticks",
                    "Ticks that were due and not taken, in each stretch of time.",
                    {"": Value("missed_ticks_total", "rise")},
                    "none",
                    marks=((1, "#e6a817"),),
                ),
                lines(
                    "Readings that failed",
                    "In each stretch of time; they are retried.",
                    {"": Value("collect_errors_total", "rise")},
                    "none",
                    marks=((1, "#e6a817"),),
                ),
            ),
        ),
        (
            "Shipping",
            (
                lines(
                    "Windows that wait",
                    "To be shipped. It grows while InfluxDB cannot be reached; nothing is lost"
                    " within the store's retention.",
                    {"": Value("backlog_windows", "last")},
                    "none",
                    marks=((100, "#e6a817"), (5000, "#d55e00")),
                ),
                lines(
                    "Lines that were refused",
                    "In each stretch of time; they are kept in the quarantine folder with the"
                    " server's words.",
                    {"": Value("rejected_lines_total", "rise")},
                    "none",
                    marks=((1, "#d55e00"),),
                ),
            ),
        ),
        (
            "Cost",
            (
                lines(
                    "Processor",
                    "Share of one core that the agent keeps busy.",
                    {"": Value("cpu_seconds_total", "rate")},
                    "percentunit",
                ),
                lines(
                    "Memory",
                    "Resident memory of the agent.",
                    {"": Value("memory_bytes", "max")},
                    "bytes",
                ),
            ),
        ),
    ),
)
