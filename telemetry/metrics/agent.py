"""Metrics of the agent itself."""

from __future__ import annotations

from telemetry.metrics.declaration import (
    COUNTER,
    GAUGE,
    LAST,
    MAX,
    MEAN_MAX,
    Family,
    Metric,
    Source,
)

AGENT = Family(
    "agent",
    "The agent's own health.",
    tags=(),
    texts=("version", "gpu_library"),
    metrics=(
        Metric("tick_seconds", "seconds", GAUGE, "from due time to sample kept", MEAN_MAX),
        Metric("missed_ticks_total", "ticks", COUNTER, "ticks that were due and not taken", LAST),
        Metric(
            "collect_errors_total", "errors", COUNTER, "readings that failed and are retried", LAST
        ),
        Metric("gpu_sample_age_seconds", "seconds", GAUGE, "age of the newest GPU sample", MAX),
        *(
            Metric(f"{name}_sample_age_seconds", "seconds", GAUGE, f"age of the newest {what}", MAX)
            for name, what in (
                ("gpu_process", "reading of GPU processes"),
                ("cpu", "reading of the processors"),
                ("memory", "reading of the host's memory"),
                ("pressure", "reading of pressure stall information"),
                ("disk", "reading of a block device"),
                ("mount", "reading of a mount"),
                ("network", "reading of a network port"),
                ("engine", "answer of an inference engine"),
                ("simulation", "simulated sample"),
            )
        ),
        Metric("host_sample_age_seconds", "seconds", GAUGE, "age of the newest host sample", MAX),
        Metric("collector_age_seconds", "seconds", GAUGE, "age at the slowest of the host's", LAST),
        Metric("backlog_windows", "windows", GAUGE, "windows that wait to be shipped", LAST),
        Metric("unwritten_windows", "windows", GAUGE, "windows that the store does not take", LAST),
        Metric("store_damaged", "errors", GAUGE, "1 for an hour after damage was found", MAX),
        Metric("rejected_lines_total", "lines", COUNTER, "lines that the server refused", LAST),
        Metric(
            "cpu_seconds_total",
            "seconds",
            COUNTER,
            "processor time of the agent and its children",
            LAST,
        ),
        Metric("memory_bytes", "bytes", GAUGE, "resident memory of the agent", MAX),
    ),
    sources=(Source(("*",), "the agent itself", "all"),),
)
