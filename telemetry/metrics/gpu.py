"""GPU metrics."""

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
    Source,
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
        Metric(
            "memory_temperature_celsius",
            "celsius",
            GAUGE,
            "temperature of device memory",
            MAX,
            brief=MAX,
        ),
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
    sources=(
        Source(
            ("utilization_ratio", "memory_utilization_ratio"),
            "nvmlDeviceGetUtilizationRates",
            "all cards; not under MIG",
        ),
        Source(
            ("memory_reserved_bytes",),
            "nvmlDeviceGetMemoryInfo_v2",
            "driver R510 and later; older ones count it as used",
        ),
        Source(
            ("memory_used_bytes", "memory_total_bytes"),
            (
                "nvmlDeviceGetMemoryInfo_v2, else nvmlDeviceGetMemoryInfo (text `memory_api` "
                "says which)"
            ),
            "all cards but unified memory (GB10, Jetson); MIG instances too",
        ),
        Source(
            ("power_watts",),
            "field NVML_FI_DEV_POWER_AVERAGE, else nvmlDeviceGetPowerUsage",
            "cards with a sensor; not most vGPUs",
        ),
        Source(
            ("power_limit_watts",),
            "nvmlDeviceGetEnforcedPowerLimit, every 30 s",
            "cards with power management",
        ),
        Source(
            ("energy_joules_total",),
            (
                "field NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, else "
                "nvmlDeviceGetTotalEnergyConsumption"
            ),
            "Volta and later",
        ),
        Source(
            ("temperature_celsius",),
            "nvmlDeviceGetTemperature, else nvmlDeviceGetTemperatureV, every 5 s",
            "all cards; not most vGPUs",
        ),
        Source(
            ("memory_temperature_celsius",),
            "field NVML_FI_DEV_MEMORY_TEMP",
            "cards with HBM (A100, H100 and later)",
        ),
        Source(("sm_clock_hertz",), "nvmlDeviceGetClockInfo", "all cards; not vGPU"),
        Source(
            ("memory_clock_hertz",), "nvmlDeviceGetClockInfo, every 30 s", "all cards; not vGPU"
        ),
        Source(
            ("pcie_rx_*", "pcie_tx_*"),
            (
                "fields NVML_FI_DEV_PCIE_COUNT_RX_BYTES and _TX_BYTES (driver R555), else "
                "GPM, else nvmlDeviceGetPcieThroughput every 2 s outside the tick; nothing "
                "above the link's ceiling"
            ),
            "Maxwell and later; not vGPU",
        ),
        Source(
            ("pcie_replays_total",),
            ("field NVML_FI_DEV_PCIE_REPLAY_COUNTER, else nvmlDeviceGetPcieReplayCounter"),
            "Kepler and later",
        ),
        Source(
            ("pcie_link_generation", "pcie_link_width"),
            ("nvmlDeviceGetCurrPcieLinkGeneration, nvmlDeviceGetCurrPcieLinkWidth, every 30 s"),
            "cards in a PCIe slot; not vGPU",
        ),
        Source(
            ("pcie_link_ratio",),
            "the link now against the inventory's, while the GPU works",
            "where both are known",
        ),
        Source(
            (
                "sm_active_ratio",
                "sm_occupancy_ratio",
                "tensor_active_ratio",
                "dram_active_ratio",
            ),
            (
                "GPM: nvmlGpmSampleGet (MIG: nvmlGpmMigSampleGet) each second, "
                "nvmlGpmMetricsGet between two"
            ),
            "Hopper and later, driver R520; MIG instances too",
        ),
        Source(
            ("encoder_ratio", "decoder_ratio"),
            ("nvmlDeviceGetEncoderUtilization, nvmlDeviceGetDecoderUtilization, every 5 s"),
            "cards with NVENC or NVDEC",
        ),
        Source(
            ("nvlink_*",),
            (
                "fields NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX and _TX, else "
                "NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES and _XMIT_BYTES, else GPM"
            ),
            "cards with an NVLink that is up",
        ),
        Source(
            ("throttle_*",),
            (
                "fields NVML_FI_DEV_CLOCKS_EVENT_REASON_*, else "
                "nvmlDeviceGetCurrentClocksEventReasons as a share of ticks"
            ),
            "all cards; the times need driver R565",
        ),
        Source(
            ("lost_ratio", "memory_full_seconds"),
            "found from several windows",
            "all cards",
        ),
        Source(
            ("ecc_uncorrected_errors",),
            "nvmlDeviceGetTotalEccErrors, every 5 s",
            "cards with ECC switched on",
        ),
        Source(("remap*",), "nvmlDeviceGetRemappedRows, every 30 s", "Ampere and later"),
        Source(
            ("xid_*",),
            "nvmlEventSetWait_v2 without waiting; each is an event too",
            "bare metal and passthrough",
        ),
        Source(
            ("process_*",),
            (
                "nvmlDeviceGetComputeRunningProcesses and ..GraphicsRunningProcesses, every 5"
                " s; lives by /proc/PID"
            ),
            "all cards; from the machine's own pid namespace",
        ),
        Source(
            ("job_*",),
            ("/proc/PID/stat, /proc/PID/io of the GPU's processes and their workers, every 5 s"),
            "processes that may be looked into (CAP_SYS_PTRACE)",
        ),
        Source(
            ("gap_*", "signal_*"),
            "counted second by second from the GPU's and the host's readings",
            "all cards",
        ),
    ),
)
