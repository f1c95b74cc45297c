"""A job that its cgroup holds back is no reason to buy: the limit is named instead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.finding import Dimension, Finding, Verdict
from advisor.phase import Phase
from advisor.rulebook import Rulebook
from advisor.sizing import judge
from telemetry.inventory import Limits
from telemetry.state import Cause
from tests.staged.frames import Made, case

TUNING = Made(phase=Phase.QLORA_FINETUNING, lost=0.4, host=0.3)


def finding(made: Made, dimension: Dimension, *limits: Limits) -> Finding:
    server = case(made, Rulebook.load())
    limited = replace(server, inventory=replace(server.inventory, job_limits=limits))
    (found,) = [f for f in judge(limited) if f.dimension is dimension]
    return found


def test_memory_that_a_limit_makes_short_is_not_bought() -> None:
    short = replace(TUNING, cause=Cause.HOST_MEMORY)
    assert finding(short, Dimension.RAM).verdict is Verdict.UNDER
    held = finding(short, Dimension.RAM, Limits(memory_max_bytes=int(64e9)))
    assert held.verdict is Verdict.ADVICE
    assert "under a limit of 64 GB" in str(held.reason)
    assert "Raise the limit" in str(held.recommendation)


@pytest.mark.parametrize(
    ("used", "limits"),
    [
        (0.95, Limits(memory_max_bytes=int(64e9))),  # the host is short besides
        (0.3, Limits(memory_max_bytes=int(1e12))),  # a limit that never holds
        (0.3, Limits(cpu_cores=8.0)),
    ],
)
def test_memory_that_is_short_whatever_the_limits_is_under(used: float, limits: Limits) -> None:
    short = replace(TUNING, cause=Cause.HOST_MEMORY, host=used)
    assert finding(short, Dimension.RAM, limits).verdict is Verdict.UNDER


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ((), "Raise the loader's number of workers"),
        ((Limits(cpu_cores=64.0),), "Raise the loader's number of workers"),
        ((Limits(cpu_cores=8.0), Limits(cpuset_threads=16)), "its cgroup allows it 8 cores"),
    ],
)
def test_a_loader_that_waits_for_its_cgroups_processors_is_told_so(
    limits: tuple[Limits, ...], told: str
) -> None:
    waiting = replace(TUNING, cause=Cause.CPU_DATALOADER)
    assert told in str(finding(waiting, Dimension.CPU, *limits).recommendation)
