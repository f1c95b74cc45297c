"""What the page shows of now: hosts, their GPUs, and alerts. What is not known is None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Protocol


class SourceError(Exception):
    """Nothing can be read at the moment; the message is one line for people."""


@dataclass(frozen=True, slots=True)
class ProcessNow:
    """One process on a GPU."""

    name: str | None = None
    pid: str | None = None
    owner: str | None = None
    owner_kind: str | None = None
    workload: str | None = None
    model: str | None = None
    memory_bytes: float | None = None
    sm_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class GpuNow:
    """One GPU in its newest window, which ends at `time` (Unix seconds).

    `state_since` is the start of the run of windows in that state, as far as was looked back.
    `memory_needed_bytes` is what weights and the used part of the KV cache take on this GPU,
    known for inference engines whose model and metrics are.
    """

    uuid: str
    time: float | None = None
    index: int | None = None
    name: str | None = None
    state: str = "unknown"
    cause: str | None = None
    note: str | None = None
    confidence: float | None = None
    state_since: float | None = None
    evidence: tuple[str, ...] = ()
    error: str | None = None
    readings: Mapping[str, float] | None = None
    memory_needed_bytes: float | None = None
    processes: tuple[ProcessNow, ...] = ()


@dataclass(frozen=True, slots=True)
class HostNow:
    """One host; `time` is the end of its newest window, None where there is none of late."""

    host: str
    time: float | None = None
    window_seconds: float | None = None
    gpus: tuple[GpuNow, ...] = ()
    readings: Mapping[str, float] | None = None
    agent_version: str | None = None


@dataclass(frozen=True, slots=True)
class AlertNow:
    """The newest transition of one alert."""

    host: str
    rule: str
    subject: str
    time: float
    raised: bool
    severity: str
    text: str
    title: str | None = None
    gpu_uuid: str | None = None
    owner: str | None = None
    snoozed_until: float | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is shown of now."""

    hosts: tuple[HostNow, ...] = ()
    alerts: tuple[AlertNow, ...] = ()


class Source(Protocol):
    """Where the page's data come from. Methods block; they are called in a thread."""

    kind: str
    every: float
    """Seconds between two looks while somebody watches."""

    def look(self) -> Picture:
        """How it stands now. Raises SourceError."""

    def series(self, host: str, since: int, until: int) -> dict[str, Any] | None:
        """The course of one host over [since, until), None for one that is not there.

        Raises SourceError.
        """


GPU_READINGS = (
    "utilization_ratio",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "memory_used_bytes",
    "memory_total_bytes",
    "power_watts",
    "power_limit_watts",
    "temperature_celsius",
    "pcie_rx_bytes_per_second",
    "pcie_tx_bytes_per_second",
)
HOST_READINGS = (
    "cpu_busy_ratio",
    "cpu_iowait_ratio",
    "memory_used_bytes",
    "memory_total_bytes",
    "memory_used_ratio",
    "pressure_io_some_ratio",
    "pressure_memory_some_ratio",
)
GPU_SERIES = (
    "utilization_ratio",
    "memory_used_bytes",
    "power_watts",
    "pcie_rx_bytes_per_second",
    "pcie_tx_bytes_per_second",
)
HOST_SERIES = (
    "cpu_busy_ratio",
    "cpu_iowait_ratio",
    "memory_used_ratio",
    "pressure_io_some_ratio",
    "pressure_memory_some_ratio",
)


def plain(value: Any) -> Any:
    """The JSON form: what is not known is left out, numbers are told to five digits."""
    if is_dataclass(value):
        pairs = ((f.name, getattr(value, f.name)) for f in fields(value))
        return {n: plain(v) for n, v in pairs if v is not None and v != ()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if isinstance(value, Mapping):
        return {n: float(f"{v:.5g}") for n, v in value.items()}
    return value
