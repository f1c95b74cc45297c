"""The benchmark's page, and whether the budgets are met."""

from __future__ import annotations

import os
import platform
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from bench.measure import Run, median, percentile
from bench.programs import Program
from bench.staging import GPUS

_MIB = 1 << 20
_COLUMNS = (
    "program",
    "reads",
    "CPU s for 1,000 ticks",
    "times ours",
    "PSS MiB",
    "RSS MiB",
    "NVML calls a tick",
)
Results = Sequence[tuple[Program, Sequence[Run]]]


@dataclass(frozen=True, slots=True)
class Budgets:
    """`budgets.toml`."""

    cpu_seconds_per_1000_ticks: float
    pss_mebibytes: float
    shipping_pss_mebibytes: float
    nvml_calls_per_tick_and_gpu: float
    p99_tick_seconds: float
    missed_ticks_ratio: float

    @classmethod
    def load(cls) -> Budgets:
        """As they are beside this file."""
        data = tomllib.loads(Path(__file__).with_name("budgets.toml").read_text("utf-8"))
        return cls(**{field.name: float(data[field.name]) for field in fields(cls)})


@dataclass(frozen=True, slots=True)
class Verdict:
    """One budget: what was measured, what is allowed."""

    what: str
    measured: str
    allowed: str
    met: bool


def verdicts(results: Results, budgets: Budgets) -> list[Verdict]:
    """Every budget of ours, and every peer to be beaten on processor time."""
    found = []
    local: float | None = None
    for program, runs in results:
        cpu = median(runs, "cpu_seconds_per_1000_ticks")
        if not program.ours:
            if local is not None:
                found.append(
                    Verdict(
                        f"less CPU than {program.name}", f"{local:.2f}", f"< {cpu:.2f}", local < cpu
                    )
                )
            continue
        if not program.shipping:
            local = cpu
            most = budgets.cpu_seconds_per_1000_ticks
            found.append(_at_most("CPU seconds for 1,000 ticks", cpu, most, ".2f"))
            calls = median(runs, "nvml_calls_per_tick") / GPUS
            allowed = budgets.nvml_calls_per_tick_and_gpu
            found.append(_at_most("NVML calls a tick and GPU", calls, allowed, ".1f"))
        ticks = [tick for run in runs for tick in run.tick_seconds]
        if ticks:
            p99 = percentile(ticks, 0.99) * 1000
            allowed = budgets.p99_tick_seconds * 1000
            found.append(_at_most("p99 of a tick, ms", p99, allowed, ".1f"))
        if ticks or program.shipping:  # which tells each tick
            missed = 1 - len(ticks) / sum(run.ticks for run in runs)
            found.append(
                _at_most("seconds without a sample, share", missed, budgets.missed_ticks_ratio)
            )
        most = budgets.shipping_pss_mebibytes if program.shipping else budgets.pss_mebibytes
        pss = median(runs, "pss_bytes") / _MIB
        found.append(_at_most(f"PSS of {program.name}, MiB", pss, most, ".1f"))
    return found


def _at_most(what: str, measured: float, allowed: float, form: str = ".3f") -> Verdict:
    return Verdict(what, format(measured, form), f"<= {allowed:g}", measured <= allowed)


def page(results: Results, judged: Sequence[Verdict], left_out: Sequence[str], how: str) -> str:
    """The page in Markdown."""
    ours = next(runs for program, runs in results if program.ours)
    base = median(ours, "cpu_seconds_per_1000_ticks")
    lines = [
        "# What the agent costs",
        "",
        f"Written by `make bench`. {how}",
        "",
        f"Machine: {_machine()}.",
        "",
        f"Every program watches the same {GPUS} staged GPUs with two processes on each, at one",
        "sample a second. The GPUs are a stand-in for NVIDIA's library that takes 20 ms for each",
        "PCIe throughput call and no time for the others, so NVML's own cost is not in the CPU",
        "figures: look at the number of calls. CPU and memory are of the whole process tree, from",
        "outside; medians over runs. node_exporter is scraped once a second. Nothing of this was",
        "measured on a real GPU.",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        "|---" * len(_COLUMNS) + "|",
        *(_row(program, runs, base) for program, runs in results),
        "",
        *_larger(results),
        *_ticks([run for program, runs in results if program.ours for run in runs]),
        "| budget | measured | allowed | |",
        "|---|---|---|---|",
        *(f"| {v.what} | {v.measured} | {v.allowed} | {_sign(v)} |" for v in judged),
        "",
    ]
    if left_out:
        lines += ["Not measured here:", "", *(f"- {reason}" for reason in left_out), ""]
    return "\n".join(lines)


def _sign(verdict: Verdict) -> str:
    return "met" if verdict.met else "**broken**"


def _row(program: Program, runs: Sequence[Run], base: float) -> str:
    cpu = median(runs, "cpu_seconds_per_1000_ticks")
    pss, rss = median(runs, "pss_bytes") / _MIB, median(runs, "rss_bytes") / _MIB
    calls = median(runs, "nvml_calls_per_tick")
    name = f"**{program.name}**" if program.ours else program.name
    return (
        f"| {name} {program.version} | {program.what} | {cpu:.2f} | {cpu / base:.1f} | {pss:.1f}"
        f" | {rss:.1f} | {f'{calls:.0f}' if calls else '-'} |"
    )


def _larger(results: Results) -> list[str]:
    """Says plainly who takes less memory than we do."""
    ours, *_ = (median(runs, "pss_bytes") for program, runs in results if program.ours)
    less = [
        f"{program.name} ({median(runs, 'pss_bytes') / _MIB:.1f} MiB)"
        for program, runs in results
        if not program.ours and median(runs, "pss_bytes") < ours
    ]
    if not less:
        return ["No program here takes less memory (PSS) than the agent with its local store.", ""]
    return [
        f"Less memory (PSS) than the agent's {ours / _MIB:.1f} MiB takes: {', '.join(less)}.",
        "",
    ]


def _ticks(runs: Sequence[Run]) -> list[str]:
    ticks = [tick * 1000 for run in runs for tick in run.tick_seconds]
    if not ticks:
        return []
    shares: Mapping[str, float] = {"median": 0.5, "p99": 0.99, "longest": 1.0}
    told = ", ".join(f"{name} {percentile(ticks, share):.1f} ms" for name, share in shares.items())
    return [f"From due time to sample kept ({len(ticks)} ticks, while shipping): {told}.", ""]


def _machine() -> str:
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    gibibytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    return (
        f"{os.cpu_count()} processors ({model}), {gibibytes:.0f} GiB, Linux"
        f" {platform.release()}, Python {platform.python_version()}"
    )
