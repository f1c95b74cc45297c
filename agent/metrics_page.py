"""The page docs/metrics.md: every metric, its unit, its source, the cards that have it."""

from __future__ import annotations

from collections.abc import Iterator

from telemetry.metrics import FAMILIES

_HEAD = """# Metrics

Generated from the declarations (`telemetry/metrics`); `talla-agent metrics --json` prints the same
names, `talla-agent doctor` what this machine lacks, and why. Units are base units; a ratio is 0 to
1. A metric that cannot be read is absent, never 0 or -1.

A window keeps the statistics that are listed: the mean is the metric's own name, each other one a
suffix (`_max`, `_min`, `_count`, `_zero_ratio`, `_busy_ratio`). Those marked "10 s" are kept by the
10-second windows alone: alerts and charts look at them, no verdict does.

## Activity counters, DCGM and Nsight

On Hopper and later the agent reads SM, tensor and memory activity by NVML's GPM. DCGM reads the
same metrics by the same calls there
([DCGM, Profiling](https://docs.nvidia.com/datacenter/dcgm/latest/reference/dcgm-api/dcgm-api-profiling.html)),
each with samples of its own, so that both run side by side. Before Hopper DCGM takes the profiling
counters for itself and the agent does not touch them. Nsight Compute, Nsight Systems and other
profilers need the counters for themselves
([dcgmi profile](https://docs.nvidia.com/datacenter/dcgm/latest/reference/command-line-reference/dcgmi/dcgmi-profile.html)
pauses DCGM for that): for such a session set `[gpu] profiling = false` and restart the agent, or
`talla-agent release`. Where the driver refuses them, the metrics are absent with its reason and
everything else goes on.
"""


def page() -> Iterator[str]:
    """The lines of the page."""
    yield from _HEAD.splitlines()
    for family in FAMILIES:
        tags = ", ".join(f"`{tag}`" for tag in (*family.tags, *family.labels)) or "none"
        yield ""
        yield f"## {family.measurement}"
        yield ""
        yield f"{family.help} Tags beside `host` and `window`: {tags}."
        yield ""
        yield "| metric | unit | says | kept | source | where |"
        yield "|---|---|---|---|---|---|"
        for metric in family.metrics:
            found = family.source(metric.name)
            kept = ", ".join(
                f"{statistic.value} (10 s)" if statistic in metric.brief else statistic.value
                for statistic in metric.statistics
            )
            cells = (f"`{metric.name}`", metric.unit, metric.help, kept, found.source, found.where)
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        if family.texts:
            yield ""
            yield "Texts: " + ", ".join(f"`{text}`" for text in family.texts) + "."


if __name__ == "__main__":
    print("\n".join(page()))
