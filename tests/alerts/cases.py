"""A staged server, second by second, and healthy but awkward work on it.

The healthy ones are those of tests/states/test_healthy.py, made longer, with a second GPU at work
and the texts of their processes. Levels: H100 traces b1, e2 and i4 of
github.com/atharvanihalani/gpu-telemetry-exploration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from telemetry.window import Key, Sample
from tests.alerts.staged import GPU, START
from tests.states.stage import HEALTHY_HOST, Second, held, idle, step

OTHER: Key = ("gpu", "GPU-2")
HOST: Key = ("host",)
HOUR = 3600
Rows = dict[Key, Second]
LINK = {"pcie_link_generation": 5.0, "pcie_link_width": 16.0}
HEALTH = {
    "throttle_thermal_ratio": 0.0,
    "throttle_power_ratio": 0.0,
    "xid_hardware_errors": 0.0,
    "xid_application_errors": 0.0,
    "ecc_uncorrected_errors": 0.0,
    "remap_pending": 0.0,
    "remap_failed": 0.0,
}
IO_WAIT: Second = {**HEALTHY_HOST, "pressure_io_some_ratio": 0.5}
SLOW_DISK: Rows = {HOST: IO_WAIT, ("disk", "nvme0n1"): {"read_await_seconds": 0.05}}
SPIN = {"pcie_rx_bytes_per_second": 2e5, "pcie_tx_bytes_per_second": 2e5}


@dataclass(frozen=True)
class Case:
    """`rows` gives what differs from a healthy server at each second."""

    name: str
    seconds: int
    rows: Callable[[int], Rows]
    workload: str | None = None
    rule: str | None = None
    onset: int = 0
    texts: dict[Key, dict[str, str]] = field(default_factory=dict)

    def samples(self, limit: float = math.inf) -> Iterator[Sample]:
        """One a second, at most so many."""
        for second in range(int(min(self.seconds, limit))):
            rows: Rows = {
                HOST: {**HEALTHY_HOST, "memory_used_bytes": 4e11, "memory_total_bytes": 1e12},
                OTHER: {**step(0.97, 610), **LINK, **HEALTH},
                ("mount", "/data"): {"size_bytes": 1e13, "used_bytes": 6e12},
            }
            for key, row in self.rows(second).items():
                base = {**LINK, **HEALTH} if key[0] == "gpu" else rows.get(key, {})
                rows[key] = {**base, **row} if row else {}
            texts = {key: dict(texts) for key, texts in self.texts.items()}
            for key, row in list(rows.items()):
                if not row:
                    del rows[key]
                    texts[key] = {"error": "GPU is lost"}
            process = {"pid": "4711", "owner": "ana", "owner_kind": "user", "user": "ana"}
            if self.workload is not None:
                process["workload"] = self.workload
            texts["gpu_process", GPU[1], "0"] = process
            yield Sample(float(START + second), rows, texts)


def _one(make: Callable[[int], Second]) -> Callable[[int], Rows]:
    return lambda i: {GPU: make(i)}


def _checkpoint(i: int) -> Rows:
    if i % 600 < 20:
        return {GPU: held(job_write_bytes_per_second=2e9, job_blocked_ratio=0.5), **SLOW_DISK}
    return {GPU: step(job_write_bytes_per_second=0.0, job_blocked_ratio=0.0)}


def _ramp_then_flat(i: int) -> Second:
    return step(gib=min(72.0, 5 + i / 20))


def healthy() -> list[Case]:
    """Nothing here may raise a warning."""
    burst = step(0.9, 300, 32, pcie_rx_bytes_per_second=1.2e10)
    spin_engine = step(1.0, 140, 70, **SPIN)
    return [
        Case(
            "computes one second in ten",
            HOUR,
            _one(lambda i: step(0.6, 250) if i % 10 == 0 else held()),
            "training",
        ),
        Case(
            "decode",
            HOUR,
            _one(
                lambda i: step(
                    0.7,
                    208,
                    sm_active_ratio=0.24,
                    tensor_active_ratio=0.04,
                    dram_active_ratio=0.5,
                    pcie_rx_bytes_per_second=3e8,
                )
            ),
            "llm_inference",
        ),
        Case(
            "gaps between requests beside a slow disk",
            HOUR,
            lambda i: {GPU: step(0.9, 450)} if i % 20 < 6 else {GPU: held(70), **SLOW_DISK},
            "llm_inference",
        ),
        Case(
            "prefill bursts",
            HOUR,
            _one(lambda i: step(1.0, 690) if i % 60 < 3 else held(70)),
            "llm_inference",
        ),
        Case(
            "an engine without requests for four hours",
            4 * HOUR,
            _one(lambda i: step(0.9, 400, 70) if i < 300 else held(70)),
            "llm_inference",
        ),
        Case(
            "an engine's ranks that spin for a request",
            2 * HOUR,
            _one(lambda i: idle() if i < 600 else spin_engine),
            "llm_inference",
        ),
        Case(
            "a collective that waits five minutes for a checkpoint",
            HOUR,
            _one(
                lambda i: (
                    idle() if i < 300 else step(1.0, 130, **SPIN) if 1200 <= i < 1500 else step()
                )
            ),
            "training",
        ),
        Case(
            "a small kernel at low power",
            2 * HOUR,
            _one(lambda i: idle() if i < 600 else step(1.0, 100, 5, pcie_rx_bytes_per_second=6e6)),
        ),
        Case(
            "gradient accumulation",
            HOUR,
            _one(lambda i: step(1.0, 690) if i % 25 < 22 else step(0.6, 300)),
            "training",
        ),
        Case("checkpoints of 20 seconds", 2 * HOUR, _checkpoint, "training"),
        Case(
            "evaluation for six minutes of twenty",
            2 * HOUR,
            _one(lambda i: (step(0.5, 250) if i % 4 else held()) if i % 1200 < 360 else step()),
            "training",
        ),
        Case(
            "a notebook with pauses of 20 minutes",
            3 * HOUR,
            _one(lambda i: step(0.8, 300, 12) if i % 1290 < 90 else held(12)),
        ),
        Case(
            "somebody else's I/O",
            HOUR,
            lambda i: {GPU: step() if i % 10 < 7 else held(), **SLOW_DISK},
            "training",
        ),
        Case(
            "one witness alone",
            HOUR,
            lambda i: {GPU: step()} if i % 10 < 6 else {GPU: held(), HOST: IO_WAIT},
            "training",
        ),
        Case(
            "a model that loads for twelve minutes, then serves",
            HOUR,
            _one(lambda i: held(2 + min(i, 700) / 10) if i < 720 else step(0.7, 300, 72)),
            "llm_inference",
        ),
        Case(
            "memory that fills at the start of a run", 2 * HOUR, _one(_ramp_then_flat), "training"
        ),
        Case(
            "a tool that looks every five minutes",
            2 * HOUR,
            _one(lambda i: idle(utilization_ratio=0.03) if i % 300 == 7 else idle()),
        ),
        Case(
            "a host-bound job with quiet gaps",
            HOUR,
            _one(lambda i: burst if i % 6 == 0 else held(32)),
            "training",
        ),
        Case("copies without a kernel", HOUR, _one(lambda i: held(pcie_rx_bytes_per_second=5e9))),
        Case(
            "a link that slows down while idle",
            2 * HOUR,
            _one(lambda i: step() if i % 120 < 100 else held(pcie_link_generation=1.0)),
        ),
        Case(
            "full load at the power limit",
            HOUR,
            _one(lambda i: step(1.0, 700, throttle_power_cap_ratio=0.95)),
            "training",
        ),
        Case(
            "five minutes of heat after a start",
            HOUR,
            _one(lambda i: step(throttle_thermal_ratio=0.3 if i < 300 else 0.01)),
            "training",
        ),
        Case(
            "an engine with a full cache for five minutes at a rush",
            HOUR,
            lambda i: {
                GPU: step(0.9, 500, 72),
                ("engine", "8000"): {
                    "kv_cache_usage_ratio": 0.98 if 600 <= i < 900 else 0.5,
                    "requests_waiting": 3.0 if 600 <= i < 900 else 0.0,
                },
            },
            "llm_inference",
        ),
        Case(
            "a page cache that fills the memory",
            HOUR,
            lambda i: {GPU: step(), HOST: {"memory_used_bytes": 7e11}},
            "training",
        ),
    ]
