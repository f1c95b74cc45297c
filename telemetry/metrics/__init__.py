"""Every metric that Talla knows, one module a family."""

from __future__ import annotations

from telemetry.metrics.agent import AGENT
from telemetry.metrics.declaration import COVERED_SECONDS, Family, Kind, Metric, Statistic
from telemetry.metrics.engine import ENGINE
from telemetry.metrics.gpu import GPU
from telemetry.metrics.gpu_process import GPU_PROCESS
from telemetry.metrics.host import DISK, HOST, MOUNT, NIC

FAMILIES: tuple[Family, ...] = (GPU, GPU_PROCESS, ENGINE, HOST, DISK, MOUNT, NIC, AGENT)


def family(measurement: str) -> Family:
    """The family of a measurement. Raises KeyError where there is none."""
    for candidate in FAMILIES:
        if candidate.measurement == measurement:
            return candidate
    raise KeyError(measurement)


__all__ = [
    "AGENT",
    "COVERED_SECONDS",
    "DISK",
    "ENGINE",
    "FAMILIES",
    "GPU",
    "GPU_PROCESS",
    "HOST",
    "MOUNT",
    "NIC",
    "Family",
    "Kind",
    "Metric",
    "Statistic",
    "family",
]
