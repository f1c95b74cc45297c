"""GPU metrics, and those of the processes on each GPU."""

from __future__ import annotations

from telemetry.chains import CHAINS
from telemetry.metrics.declaration import (
    COUNTER,
    GAUGE,
    LAST,
    MAX,
    MEAN,
    MEAN_MAX,
    MEAN_MIN_MAX,
    Family,
    Metric,
    Statistic,
)

_ACTIVITY = (
    Statistic.MEAN,
    Statistic.MAX,
    Statistic.ZERO_RATIO,
    Statistic.BUSY_RATIO,
    Statistic.COUNT,
)

GPU = Family(
    "gpu",
    "One GPU, or one MIG instance (UUID/GI/CI).",
    tags=("gpu_uuid",),
    labels=("gpu_model",),
    texts=("gpu_model", "error", "memory_api", "memory_kind", "state", "cause", "xid"),
    metrics=(
        Metric(
            "utilization_ratio",
            "ratio",
            GAUGE,
            "share of time in which at least one kernel ran; not a measure of work",
            _ACTIVITY,
            busy_at=0.10,
        ),
        Metric(
            "memory_utilization_ratio",
            "ratio",
            GAUGE,
            "share of time in which device memory was read or written; not its capacity",
            MEAN_MAX,
            brief=MAX,
        ),
        Metric("memory_used_bytes", "bytes", GAUGE, "device memory in use", MEAN_MIN_MAX),
        Metric("memory_total_bytes", "bytes", GAUGE, "device memory of the card", LAST),
        Metric(
            "memory_reserved_bytes", "bytes", GAUGE, "memory kept by the driver", LAST, brief=LAST
        ),
        Metric("power_watts", "watts", GAUGE, "power drawn by the board", MEAN_MIN_MAX),
        Metric("power_limit_watts", "watts", GAUGE, "enforced power limit", LAST),
        Metric("energy_joules_total", "joules", COUNTER, "energy since the driver loaded", LAST),
        Metric("temperature_celsius", "celsius", GAUGE, "GPU temperature", MEAN_MAX),
        Metric("memory_temperature_celsius", "celsius", GAUGE, "temperature of device memory", MAX),
        Metric("sm_clock_hertz", "hertz", GAUGE, "clock of the multiprocessors", MEAN),
        Metric("memory_clock_hertz", "hertz", GAUGE, "clock of the device memory", MEAN),
        Metric("pcie_rx_bytes_per_second", "bytes/second", GAUGE, "PCIe, host to GPU", MEAN_MAX),
        Metric("pcie_tx_bytes_per_second", "bytes/second", GAUGE, "PCIe, GPU to host", MEAN_MAX),
        Metric("pcie_replays_total", "packets", COUNTER, "PCIe packets that were sent again", LAST),
        Metric("pcie_link_generation", "generation", GAUGE, "best PCIe generation seen now", MAX),
        Metric("pcie_link_width", "lanes", GAUGE, "widest PCIe link seen now", MAX),
        Metric(
            "sm_active_ratio",
            "ratio",
            GAUGE,
            "share of multiprocessor time with a warp resident",
            (Statistic.MEAN, Statistic.MAX, Statistic.ZERO_RATIO, Statistic.BUSY_RATIO),
            busy_at=0.01,
            brief=(Statistic.BUSY_RATIO,),
        ),
        Metric("sm_occupancy_ratio", "ratio", GAUGE, "share of warp slots in use", MEAN),
        Metric("tensor_active_ratio", "ratio", GAUGE, "tensor pipe active", MEAN_MAX),
        Metric(
            "dram_active_ratio",
            "ratio",
            GAUGE,
            "device memory interface active",
            MEAN_MAX,
            brief=MAX,
        ),
        Metric("encoder_ratio", "ratio", GAUGE, "share of time in which video is encoded", MEAN),
        Metric("decoder_ratio", "ratio", GAUGE, "share of time in which video is decoded", MEAN),
        *(
            Metric(
                f"nvlink_{way}_bytes_per_second",
                "bytes/second",
                GAUGE,
                f"NVLink {where}",
                MEAN_MAX,
                brief=MAX,
            )
            for way, where in (("rx", "in"), ("tx", "out"))
        ),
        Metric("throttle_thermal_ratio", "ratio", GAUGE, "share of time slowed by heat", MEAN),
        Metric(
            "throttle_power_ratio", "ratio", GAUGE, "share of time slowed by a power brake", MEAN
        ),
        Metric(
            "throttle_power_cap_ratio",
            "ratio",
            GAUGE,
            "share of time at the software power cap, ordinary under full load",
            MEAN,
        ),
        Metric(
            "pcie_link_ratio",
            "ratio",
            GAUGE,
            "the link's speed as a share of what card and slot allow; told while the GPU works",
            LAST,
            brief=LAST,
        ),
        Metric(
            "lost_ratio",
            "ratio",
            GAUGE,
            "share of time for which a GPU that was there errs",
            LAST,
            brief=LAST,
        ),
        Metric(
            "memory_full_seconds",
            "seconds",
            GAUGE,
            "time until memory that keeps growing fills the card; absent where it does not grow",
            LAST,
            brief=LAST,
        ),
        Metric("ecc_uncorrected_errors", "errors", GAUGE, "uncorrected ECC errors, new ones", MAX),
        Metric(
            "remapped_rows_uncorrected",
            "rows",
            GAUGE,
            "rows remapped for uncorrected errors",
            MAX,
            brief=MAX,
        ),
        Metric(
            "remap_pending",
            "rows",
            GAUGE,
            "1 while a row waits for a reset to be remapped",
            MAX,
            brief=MAX,
        ),
        Metric(
            "remap_failed", "rows", GAUGE, "1 where a row could not be remapped", MAX, brief=MAX
        ),
        *(
            Metric(f"xid_{of}_errors", "errors", GAUGE, f"XIDs that point to {who}", MAX, brief=MAX)
            for of, who in (("hardware", "card or driver"), ("application", "the program"))
        ),
        Metric("process_count", "processes", GAUGE, "live processes seen on the GPU", MAX),
        Metric("process_memory_bytes", "bytes", GAUGE, "device memory of the processes seen", MAX),
        Metric(
            "job_blocked_ratio",
            "ratio",
            GAUGE,
            "share of the GPU's processes and their workers that wait for I/O (state D)",
            MEAN,
            brief=MEAN,
        ),
        Metric(
            "job_computing_ratio",
            "ratio",
            GAUGE,
            "share of the workers of the GPU's processes that use a processor or wait for one"
            " (state R)",
            (Statistic.MEAN, Statistic.BUSY_RATIO),
            busy_at=0.75,
            brief=MEAN,
        ),
        Metric(
            "job_read_bytes_per_second",
            "bytes/second",
            GAUGE,
            "bytes that the GPU's processes and their workers had read from storage",
            MEAN_MAX,
            brief=MAX,
        ),
        Metric(
            "job_write_bytes_per_second",
            "bytes/second",
            GAUGE,
            "bytes that the GPU's processes and their workers wrote",
            MEAN_MAX,
            brief=MAX,
        ),
        Metric(
            "gap_ratio",
            "ratio",
            GAUGE,
            "share of seconds in which the GPU was mostly not at work",
            MEAN,
        ),
        Metric(
            "gap_lost_ratio",
            "ratio",
            GAUGE,
            "share of time without a kernel, within those seconds",
            MEAN,
        ),
        *(
            Metric(
                f"gap_{chain.name}_ratio",
                "ratio",
                GAUGE,
                f"share of seconds that are gaps while {chain.help}",
                MEAN,
            )
            for chain in CHAINS
        ),
        *(
            Metric(
                f"signal_{chain.name}_ratio",
                "ratio",
                GAUGE,
                f"share of seconds in which {chain.help}",
                MEAN,
            )
            for chain in CHAINS
            if chain.of_job
        ),
    ),
)

GPU_PROCESS = Family(
    "gpu_process",
    "One process on one GPU, in the slot (0 to 15) that it keeps while it lives.",
    tags=("gpu_uuid", "slot"),
    texts=(
        "pid",
        "name",
        "command",
        "user",
        "owner",
        "owner_kind",
        "workload",
        "tool",
        "model",
        "model_source",
        "architecture",
        "model_type",
        "hidden_size",
        "quantization",
        "state",
    ),
    metrics=(
        Metric("memory_bytes", "bytes", GAUGE, "device memory of the process", MEAN_MAX),
        Metric("sm_ratio", "ratio", GAUGE, "share of time with a kernel of the process", MEAN_MAX),
        Metric(
            "weights_bytes",
            "bytes",
            GAUGE,
            "weight files (safetensors, gguf) that it was seen to hold, of the whole model",
            LAST,
        ),
        Metric("cpu_cores", "cores", GAUGE, "processor cores that it keeps busy", MEAN_MAX),
        Metric("host_memory_bytes", "bytes", GAUGE, "resident host memory", MAX),
        Metric("read_bytes_per_second", "bytes/second", GAUGE, "read from storage", MEAN_MAX),
        Metric("write_bytes_per_second", "bytes/second", GAUGE, "written to storage", MEAN_MAX),
        Metric("read_calls_per_second", "calls/second", GAUGE, "calls that read anything", MEAN),
        Metric("write_calls_per_second", "calls/second", GAUGE, "calls that write anything", MEAN),
        Metric(
            "cpu_limit_cores", "cores", GAUGE, "processors that its cgroup allows at most", LAST
        ),
        Metric("memory_limit_bytes", "bytes", GAUGE, "host memory that its cgroup allows", LAST),
        Metric(
            "memory_high_bytes", "bytes", GAUGE, "host memory from which its cgroup is slowed", LAST
        ),
        *(
            Metric(
                f"pressure_{resource}_{degree}_ratio",
                "ratio",
                GAUGE,
                f"share of time in which {who} of its cgroup waited for {what} (PSI)",
                MEAN,
            )
            for resource, what in (("cpu", "a processor"), ("io", "I/O"), ("memory", "memory"))
            for degree, who in (("some", "a task"), ("full", "all tasks"))
        ),
    ),
)
