"""The benchmark's own arithmetic: a broken budget is seen, and processor time is what was used."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.kept import Kept
from bench.measure import Run, cpu_seconds, memory, percentile, tree
from bench.page import Budgets, page, verdicts
from bench.programs import Program, Start

BUDGETS = Budgets(
    cpu_seconds_per_1000_ticks=2.5,
    pss_mebibytes=30,
    shipping_pss_mebibytes=66,
    nvml_calls_per_tick_and_gpu=8,
    p99_tick_seconds=0.02,
    missed_ticks_ratio=0.01,
)


def program(name: str, *, ours: bool = False) -> Program:
    return Program(name, "1", "GPUs", lambda _: Start(()), ours=ours)


def run(
    cpu: float = 0.2, pss: float = 25, calls: float = 50, slow: int = 0, ticks: int = 100
) -> Run:
    times = (0.005,) * (ticks - slow) + (0.5,) * slow
    return Run(100.0, cpu, pss * (1 << 20), 2 * pss * (1 << 20), calls * 100, times)


@pytest.mark.parametrize(
    ("ours", "broken"),
    [
        (run(), set()),
        (run(cpu=0.26), {"CPU seconds for 1,000 ticks"}),
        (run(pss=30.1), {"PSS of talla-agent, MiB"}),
        (run(calls=65), {"NVML calls a tick and GPU"}),
        (run(slow=2), {"p99 of a tick, ms"}),
        (run(ticks=98), {"seconds without a sample, share"}),
        (run(cpu=1.1), {"CPU seconds for 1,000 ticks", "less CPU than peer"}),
    ],
)
def test_a_broken_budget_is_seen_and_told(ours: Run, broken: set[str]) -> None:
    results = [(program("talla-agent", ours=True), [ours]), (program("peer"), [run(cpu=1.0)])]
    judged = verdicts(results, BUDGETS)
    assert {verdict.what for verdict in judged if not verdict.met} == broken
    told = page(results, judged, ["node_exporter: not installed"], "1 run.")
    assert told.count("**broken**") == len(broken)
    assert "node_exporter: not installed" in told


def test_an_agent_that_tells_no_tick_has_missed_them_all() -> None:
    ours = replace(program("talla-agent, shipping", ours=True), shipping=True)
    judged = verdicts([(ours, [run(ticks=0)])], BUDGETS)
    assert {v.what for v in judged if not v.met} == {"seconds without a sample, share"}


def test_a_peer_that_takes_less_memory_is_named() -> None:
    results = [(program("talla-agent", ours=True), [run()]), (program("peer"), [run(pss=20)])]
    told = page(results, verdicts(results, BUDGETS), [], "1 run.")
    assert "Less memory (PSS) than the agent's 25.0 MiB takes: peer (20.0 MiB)." in told


def test_the_percentile_is_the_nearest_rank() -> None:
    values = [float(n) for n in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.99, 1.0)] == [50.0, 99.0, 100.0]
    assert percentile([7.0], 0.99) == 7.0


def test_processor_time_and_memory_are_of_the_whole_tree() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ntime.sleep(60)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        pids = tree(process.pid)
        used = cpu_seconds(pids)
        pss, rss = memory(pids)
        for pid in pids:
            subprocess.run(["kill", str(pid)], check=True)
    assert len(pids) == 2
    assert 0.3 <= used < 2.0
    assert 0 < pss <= rss


def test_a_benchmark_that_was_stopped_goes_on_with_the_runs_that_are_of_the_same_work(
    tmp_path: Path,
) -> None:
    kept, peer = Kept(tmp_path, (15.0, 90.0)), program("a peer")
    kept.put(peer, 1, run(), 0.5)
    assert kept.find(peer, 1) == (run(), 0.5)
    assert kept.find(peer, 2) is None
    assert kept.find(replace(peer, version="2"), 1) is None
    assert Kept(tmp_path, (7.0, 18.0)).find(peer, 1) is None
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text("utf-8").replace('"time": ', '"time": -'), "utf-8")
    assert kept.find(peer, 1) is None  # of another day
    file.write_text("{", "utf-8")
    assert kept.find(peer, 1) is None
