"""Metrics of the processes on each GPU."""

from __future__ import annotations

from telemetry.metrics.declaration import GAUGE, LAST, MAX, MEAN, MEAN_MAX, Family, Metric, Source

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
    sources=(
        Source(
            ("memory_bytes",),
            "nvmlDeviceGetComputeRunningProcesses",
            "all cards; WSL does not tell it",
        ),
        Source(
            ("sm_ratio",), "nvmlDeviceGetProcessUtilization", "Maxwell and later; not under MIG"
        ),
        Source(
            ("weights_bytes",),
            "/proc/PID/fd and /proc/PID/maps, while the process starts",
            "processes that may be looked into",
        ),
        Source(
            ("cpu_cores", "host_memory_bytes"),
            "/proc/PID/stat of the process and its workers",
            "processes of the machine's pid namespace",
        ),
        Source(
            ("read_*", "write_*"),
            "/proc/PID/io (read_bytes, write_bytes; syscr, syscw)",
            "processes that may be looked into (CAP_SYS_PTRACE)",
        ),
        Source(
            ("cpu_limit_cores",),
            (
                "cpu.max, cpuset.cpus.effective of the process's cgroup and those above it "
                "(v1: cpu.cfs_quota_us, cpuset.effective_cpus), every 60 s"
            ),
            "cgroups with such a limit",
        ),
        Source(
            ("memory_limit_bytes",),
            (
                "memory.max of the process's cgroup and those above it (v1: "
                "memory.limit_in_bytes), every 60 s"
            ),
            "cgroups with such a limit",
        ),
        Source(
            ("memory_high_bytes",),
            "memory.high of the process's cgroup and those above it, every 60 s",
            "cgroups of version 2 with such a limit",
        ),
        Source(
            ("pressure_*",),
            ("cpu.pressure, io.pressure, memory.pressure of the process's cgroup, every 15 s"),
            "cgroups of version 2 below the root, kernel with PSI on (psi=1)",
        ),
    ),
)
