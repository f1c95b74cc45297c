"""Collectors: each reads one part of the machine into samples."""

from __future__ import annotations

from collections.abc import Callable

from agent.collectors.collector import Collector, Sources
from agent.collectors.cpu import CpuCollector
from agent.collectors.disk import DiskCollector
from agent.collectors.engine import EngineCollector
from agent.collectors.gpu import GpuCollector
from agent.collectors.gpu_process import GpuProcessCollector
from agent.collectors.memory import MemoryCollector
from agent.collectors.mount import MountCollector
from agent.collectors.network import NetworkCollector
from agent.collectors.pressure import PressureCollector

COLLECTORS: tuple[Callable[[Sources], Collector], ...] = (
    CpuCollector,
    MemoryCollector,
    PressureCollector,
    DiskCollector,
    MountCollector,
    NetworkCollector,
    GpuCollector,  # after the host, which is read while the driver answers
    GpuProcessCollector,  # adds to the GPUs' rows
    EngineCollector,  # looks for engines among the GPUs' processes
)

__all__ = ["COLLECTORS", "Collector", "Sources"]
