"""Metrics of the host: processors, memory, pressure, block devices, mounts and NICs."""

from __future__ import annotations

from telemetry.chains import CHAINS
from telemetry.metrics.declaration import (
    GAUGE,
    LAST,
    MAX,
    MEAN,
    MEAN_MAX,
    Family,
    Metric,
    Source,
)

HOST = Family(
    "host",
    "The server as a whole.",
    tags=(),
    metrics=(
        Metric(
            "cpu_busy_ratio", "ratio", GAUGE, "processor time not idle, I/O wait apart", MEAN_MAX
        ),
        Metric("cpu_iowait_ratio", "ratio", GAUGE, "processor time idle while I/O waits", MEAN_MAX),
        Metric("load_1m", "tasks", GAUGE, "load average of the last minute", MAX),
        Metric("memory_total_bytes", "bytes", GAUGE, "memory that the kernel can use", LAST),
        Metric("memory_used_bytes", "bytes", GAUGE, "total less available", MEAN_MAX),
        Metric(
            "memory_used_ratio", "ratio", GAUGE, "used memory as a share of the total", MEAN_MAX
        ),
        Metric("swap_used_bytes", "bytes", GAUGE, "swap in use", MAX),
        Metric("gpus_missing", "gpus", GAUGE, "GPUs fewer than this server has", LAST),
        Metric(
            "gpus_idle_ratio", "ratio", GAUGE, "share of its GPUs that do nothing; 1 is all", LAST
        ),
        Metric("swap_in_bytes_per_second", "bytes/second", GAUGE, "read back from swap", MEAN_MAX),
        Metric(
            "major_faults_per_second", "faults/second", GAUGE, "faults that read storage", MEAN_MAX
        ),
        Metric(
            "refaults_per_second",
            "pages/second",
            GAUGE,
            "pages in use that were pushed out of memory and read again",
            MEAN_MAX,
        ),
        *(
            Metric(
                f"pressure_{resource}_{degree}_ratio",
                "ratio",
                GAUGE,
                f"share of time in which {who} waited for {what} (PSI)",
                MEAN_MAX,
            )
            for resource, what in (("cpu", "a processor"), ("io", "I/O"), ("memory", "memory"))
            for degree, who in (("some", "a task"), ("full", "all tasks"))
            if (resource, degree) != ("cpu", "full")  # always 0 for the whole system
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
            if not chain.of_job
        ),
    ),
    sources=(
        Source(("cpu_*",), "/proc/stat", "all"),
        Source(("load_1m",), "/proc/loadavg", "all"),
        Source(
            ("memory_*", "swap_used_bytes"),
            "/proc/meminfo",
            "all",
        ),
        Source(
            (
                "swap_in_*",
                "major_*",
                "refaults_*",
            ),
            "/proc/vmstat",
            "all",
        ),
        Source(("pressure_*",), "/proc/pressure/*", "kernel 4.20 and later with PSI on (psi=1)"),
        Source(("gpus_*",), "found from the GPUs' states and [gpu] expected", "machines with GPUs"),
        Source(("signal_*",), "counted second by second from the host's readings", "all"),
    ),
)

DISK = Family(
    "disk",
    "One whole block device.",
    tags=("device",),
    texts=("kind",),
    metrics=(
        Metric("read_bytes_per_second", "bytes/second", GAUGE, "read", MEAN_MAX),
        Metric("write_bytes_per_second", "bytes/second", GAUGE, "written", MEAN_MAX),
        Metric("reads_per_second", "requests/second", GAUGE, "read requests done", MEAN),
        Metric(
            "read_await_seconds", "seconds", GAUGE, "time a read takes, queue included", MEAN_MAX
        ),
        Metric("write_await_seconds", "seconds", GAUGE, "time a write takes", MEAN_MAX),
        Metric("queue_depth", "requests", GAUGE, "requests in flight", MEAN_MAX),
        Metric("busy_ratio", "ratio", GAUGE, "share of time with a request in flight", MEAN_MAX),
    ),
    sources=(
        Source(
            ("*",),
            "/sys/block/DEVICE/stat",
            "whole block devices, and loop devices that a GPU process reads from",
        ),
    ),
)

MOUNT = Family(
    "mount",
    "One mounted file system that matters to a job: data, network and FUSE mounts.",
    tags=("mount",),
    texts=("fstype", "source", "device"),
    metrics=(
        Metric("size_bytes", "bytes", GAUGE, "size of the file system", LAST),
        Metric("used_bytes", "bytes", GAUGE, "used on the file system", LAST),
        Metric("used_ratio", "ratio", GAUGE, "used as a share of the size", LAST),
        Metric("read_bytes_per_second", "bytes/second", GAUGE, "read from the server", MEAN_MAX),
        Metric("write_bytes_per_second", "bytes/second", GAUGE, "written to the server", MEAN_MAX),
        Metric("read_round_trip_seconds", "seconds", GAUGE, "round trip of a read", MEAN_MAX),
        Metric("read_queue_seconds", "seconds", GAUGE, "wait before a read is sent", MEAN_MAX),
        Metric("retransmits_per_second", "requests/second", GAUGE, "requests sent again", MEAN_MAX),
        Metric(
            "job_open_ratio",
            "ratio",
            GAUGE,
            "share of time in which a GPU's process or a worker of it has a file open on it",
            MEAN,
        ),
    ),
    sources=(
        Source(
            ("size_*", "used_*"),
            "statvfs(2), every 60 s in a thread of its own",
            "all sampled mounts",
        ),
        Source(
            ("read_bytes_per_second", "write_bytes_per_second"),
            "/proc/self/mountstats, /proc/fs/cifs/Stats",
            "NFS, SMB",
        ),
        Source(
            ("job_open_ratio",),
            ("/proc/PID/fd of the GPU's processes and some of their workers, every 30 s"),
            ("network and FUSE mounts; processes that may be looked into (CAP_SYS_PTRACE)"),
        ),
        Source(
            ("read_round_trip_*",),
            "/proc/self/mountstats, /proc/fs/cifs/Stats",
            ("NFS; SMB of kernels with CONFIG_CIFS_STATS2, all shares of a server together"),
        ),
        Source(("*",), "/proc/self/mountstats", "NFS"),
    ),
)

NIC = Family(
    "nic",
    "One network interface, or port of InfiniBand or RoCE.",
    tags=("device",),
    texts=("kind", "state", "interface", "gid_type"),
    metrics=(
        Metric("rx_bytes_per_second", "bytes/second", GAUGE, "received", MEAN_MAX),
        Metric("tx_bytes_per_second", "bytes/second", GAUGE, "sent", MEAN_MAX),
        Metric("speed_bits_per_second", "bits/second", GAUGE, "speed of the link", LAST),
        Metric("rx_link_ratio", "ratio", GAUGE, "received, as a share of the link", MEAN_MAX),
        Metric("tx_link_ratio", "ratio", GAUGE, "sent, as a share of the link", MEAN_MAX),
    ),
    sources=(
        Source(
            ("*",),
            "/sys/class/net, /sys/class/infiniband",
            "interfaces with a device, ports of InfiniBand and RoCE",
        ),
    ),
)
