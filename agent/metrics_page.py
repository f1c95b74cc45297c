"""The page docs/metrics.md: every metric, its unit, its source, the cards that have it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import NamedTuple

from telemetry.metrics import FAMILIES

_HEAD = """# Metrics

Generated from the declarations (`telemetry/metrics`) and `agent/metric_sources.toml`; `talla-agent
metrics --json` prints the same names, `talla-agent doctor` what this machine lacks, and why. Units
are base units; a ratio is 0 to 1. A metric that cannot be read is absent, never 0 or -1.

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


class Source(NamedTuple):
    """The call or file that gives a metric, and where it is to be had."""

    source: str
    where: str


class Sources:
    """`metric_sources.toml`."""

    def __init__(self, families: dict[str, dict[str, list[dict[str, object]]]]) -> None:
        self._families = families

    @classmethod
    def load(cls) -> Sources:
        """The sources that Talla ships."""
        text = resources.files("agent").joinpath("metric_sources.toml").read_text("utf-8")
        return cls(tomllib.loads(text))

    def find(self, measurement: str, metric: str) -> Source:
        """Raises LookupError for a metric without a source."""
        for entry in self._families[measurement]["entries"]:
            names = entry["metrics"]
            assert isinstance(names, list)
            if any(_fits(name, metric) for name in names):
                return Source(str(entry["source"]), str(entry["where"]))
        raise LookupError(f"{measurement} {metric}: metric_sources.toml names no source")

    def unused(self) -> list[str]:
        """Names of the file that fit no declared metric."""
        declared = {f.measurement: [m.name for m in f.metrics] for f in FAMILIES}
        return [
            f"{measurement} {name}"
            for measurement, family in self._families.items()
            for entry in family["entries"]
            for name in entry["metrics"]  # type: ignore[attr-defined]
            if not any(_fits(name, metric) for metric in declared[measurement])
        ]


def _fits(written: str, metric: str) -> bool:
    return metric.startswith(written[:-1]) if written.endswith("*") else metric == written


def page() -> Iterator[str]:
    """The lines of the page."""
    sources = Sources.load()
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
            found = sources.find(family.measurement, metric.name)
            kept = ", ".join(
                f"{statistic.value} (10 s)" if statistic in metric.brief else statistic.value
                for statistic in metric.statistics
            )
            cells = (f"`{metric.name}`", metric.unit, metric.help, kept, *found)
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        if family.texts:
            yield ""
            yield "Texts: " + ", ".join(f"`{text}`" for text in family.texts) + "."


if __name__ == "__main__":
    print("\n".join(page()))
