"""Staged troubles, second by second: each must raise its rule and no other."""

from __future__ import annotations

from collections.abc import Callable

from tests.alerts.cases import HOST, HOUR, SLOW_DISK, SPIN, Case, Rows
from tests.alerts.staged import GPU
from tests.states.stage import Second, held, idle, step


def troubles() -> list[Case]:
    """Each must raise its rule, and nothing else of severity warning or above."""
    quiet = 600  # a healthy beginning, from which idle power is learned too

    def after(
        make: Callable[[int], Rows], *, before: Second | None = None
    ) -> Callable[[int], Rows]:
        return lambda i: {GPU: idle() if i < 120 else before or step()} if i < quiet else make(i)

    def gpu(**more: float) -> Callable[[int], Rows]:
        return after(lambda i: {GPU: step(**more)})

    # 100 % at 60 W of 400 W for hours, PCIe at rest: github.com/NVIDIA/nccl/issues/968 and others.
    hang = {**held(40), "utilization_ratio": 1.0, "power_watts": 95.0, **SPIN}
    read_wait = held(job_read_bytes_per_second=5e7, job_blocked_ratio=0.9)

    def leak(i: int) -> Rows:
        return {GPU: step(gib=40 + (i - quiet) / 150)}

    return [
        Case(
            "a notebook left open",
            2 * HOUR,
            after(lambda i: {GPU: held(18)}),
            None,
            "gpu_idle_held",
            quiet,
        ),
        Case(
            "memory of a killed process",
            HOUR,
            after(lambda i: {GPU: {**held(31), "process_count": 0.0}}),
            None,
            "gpu_orphan_held",
            quiet,
        ),
        Case(
            "a collective that hangs",
            HOUR,
            after(lambda i: {GPU: hang}),
            "training",
            "gpu_stuck",
            quiet,
        ),
        Case(
            "a training run on a slow disk",
            2 * HOUR,
            after(lambda i: {GPU: step()} if i % 10 < 6 else {GPU: read_wait, **SLOW_DISK}),
            "training",
            "gpu_starved",
            quiet,
        ),
        Case(
            "a leak of 0.4 GiB a minute",
            2 * HOUR,
            after(leak),
            "training",
            "gpu_memory_filling",
            quiet,
        ),
        Case(
            "an engine whose cache is full",
            HOUR,
            after(
                lambda i: {
                    GPU: step(0.9, 500, 72),
                    ("engine", "8000"): {"kv_cache_usage_ratio": 0.99, "requests_waiting": 9.0},
                }
            ),
            "llm_inference",
            "engine_kv_cache_full",
            quiet,
        ),
        Case(
            "a GPU that answers errors only",
            HOUR,
            after(lambda i: {GPU: {}}),
            "training",
            "gpu_lost",
            quiet,
        ),
        Case(
            "XID 48",
            HOUR,
            after(lambda i: {GPU: step(xid_hardware_errors=1.0 if i == quiet + 3 else 0.0)}),
            "training",
            "gpu_xid",
            quiet + 3,
        ),
        Case(
            "an uncorrected ECC error",
            HOUR,
            after(lambda i: {GPU: step(ecc_uncorrected_errors=1.0 if i == quiet + 3 else 0.0)}),
            "training",
            "gpu_ecc_uncorrected",
            quiet + 3,
        ),
        Case(
            "a row that waits to be remapped",
            HOUR,
            gpu(remap_pending=1.0),
            "training",
            "gpu_remap_pending",
            quiet,
        ),
        Case(
            "a row that cannot be remapped",
            HOUR,
            gpu(remap_failed=1.0, remap_pending=1.0),
            "training",
            "gpu_remap_failed",
            quiet,
        ),
        Case(
            "a fan that failed",
            HOUR,
            gpu(throttle_thermal_ratio=0.4),
            "training",
            "gpu_throttled_thermal",
            quiet,
        ),
        Case(
            "a power supply that failed",
            HOUR,
            gpu(throttle_power_ratio=0.5),
            "training",
            "gpu_throttled_power",
            quiet,
        ),
        Case(
            "eight of sixteen lanes",
            2 * HOUR,
            gpu(pcie_link_width=8.0),
            "training",
            "gpu_pcie_link",
            quiet,
        ),
        Case(
            "a host that waits for memory",
            HOUR,
            after(
                lambda i: {
                    GPU: step(),
                    HOST: {
                        "pressure_memory_full_ratio": 0.4,
                        "memory_used_bytes": 9.9e11,
                        "swap_in_bytes_per_second": 5e7,
                    },
                }
            ),
            "training",
            "host_memory_pressure",
            quiet,
        ),
        Case(
            "a host without pressure figures, nearly out of memory",
            HOUR,
            after(lambda i: {GPU: step(), HOST: {"memory_used_bytes": 9.8e11}}),
            "training",
            "host_memory_low",
            quiet,
        ),
        Case(
            "a host that swaps",
            HOUR,
            after(lambda i: {GPU: step(), HOST: {"swap_in_bytes_per_second": 5e7}}),
            "training",
            "host_swapping",
            quiet,
        ),
        Case(
            "a file system at 96 %",
            HOUR,
            after(lambda i: {GPU: step(), ("mount", "/data"): {"used_bytes": 9.6e12}}),
            "training",
            "disk_near_full",
            quiet,
        ),
        Case(
            "a full file system",
            HOUR,
            after(lambda i: {GPU: step(), ("mount", "/data"): {"used_bytes": 9.99e12}}),
            "training",
            "disk_full",
            quiet,
        ),
        Case(
            "a driver that gives nothing any more",
            HOUR,
            after(
                lambda i: {GPU: step(), ("agent",): {"gpu_sample_age_seconds": float(i - quiet)}}
            ),
            None,
            "gpu_readings_silent",
            quiet,
        ),
        Case(
            "a host that cannot be read",
            HOUR,
            after(
                lambda i: {GPU: step(), ("agent",): {"host_sample_age_seconds": float(i - quiet)}}
            ),
            None,
            "host_readings_silent",
            quiet,
        ),
        Case(
            "one collector that reads nothing more",
            HOUR,
            after(
                lambda i: {GPU: step(), ("agent",): {"disk_sample_age_seconds": float(i - quiet)}}
            ),
            None,
            "collector_silent",
            quiet,
        ),
        Case(
            "a store that was damaged",
            HOUR,
            after(lambda i: {GPU: step(), ("agent",): {"store_damaged": 1.0}}),
            None,
            "store_damaged",
            quiet,
        ),
        Case(
            "a full disk under the store",
            HOUR,
            after(lambda i: {GPU: step(), ("agent",): {"unwritten_windows": (i - quiet) / 10}}),
            None,
            "store_unwritable",
            quiet,
        ),
        Case(
            "an InfluxDB that is away",
            2 * HOUR,
            after(lambda i: {GPU: step(), ("agent",): {"backlog_windows": (i - quiet) / 9.7}}),
            None,
            "shipping_backlog",
            quiet,
        ),
    ]
