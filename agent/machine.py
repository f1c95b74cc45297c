"""This machine: its collectors, and the NVML process."""

from __future__ import annotations

import logging
import time as clock
from collections.abc import Callable, Mapping
from dataclasses import replace

from agent.collectors import COLLECTORS, Collector, Sources
from agent.collectors.disk import DiskCollector
from agent.collectors.gpu import GpuCollector
from agent.collectors.gpu_process import GpuProcessCollector
from agent.collectors.mount import MountCollector
from agent.config.settings import ServerSettings, Settings
from agent.host.hostfs import HostFs
from agent.inventory import take_inventory
from agent.nvml.client import NvmlClient, NvmlEvent, NvmlEventKind
from agent.nvml.sleep import Sleepers
from telemetry.event import Event, Severity
from telemetry.inventory import Inventory, Workload
from telemetry.window import Sample

_LOG = logging.getLogger(__name__)

_SEVERITY = {
    NvmlEventKind.DRIVER_FOUND: Severity.INFO,
    NvmlEventKind.GPU_RETURNED: Severity.INFO,
    NvmlEventKind.GPU_LOST: Severity.CRITICAL,
    NvmlEventKind.DRIVER_MISMATCH: Severity.CRITICAL,
}
_LEVEL = {
    Severity.INFO: logging.INFO,
    Severity.WARNING: logging.WARNING,
    Severity.CRITICAL: logging.ERROR,
}


class MachineSource:
    """Samples of this machine."""

    def __init__(
        self,
        settings: Settings,
        host: str,
        *,
        hostfs: HostFs | None = None,
        patience: float | None = 0.5,
        nvml: Callable[..., NvmlClient] = NvmlClient,
    ) -> None:
        """`hostfs` is where /proc and /sys are found; `patience` how long a tick waits for the
        driver (None: until it answers or is known to be hung); `nvml` makes the client."""
        self.simulated: str | None = None
        self._host = host
        self._server = settings.server
        self.hostfs = hostfs or HostFs()
        gpu = settings.gpu
        self.nvml: NvmlClient | None = None
        if gpu.enabled:
            sleepers = Sleepers(self.hostfs)
            self.nvml = nvml(
                gpu.deadline_seconds,
                gpu.throughput_seconds,
                profiling=gpu.profiling,
                sleepers=sleepers,
            )
        sources = Sources(
            self.hostfs,
            self.nvml,
            settings.server.data_paths,
            settings.engine.enabled,
            settings.engine.urls,
            patience,
        )
        self.collectors: tuple[Collector, ...] = tuple(make(sources) for make in COLLECTORS)
        self.gpu = next(c for c in self.collectors if isinstance(c, GpuCollector))
        self._disks = next(c for c in self.collectors if isinstance(c, DiskCollector))
        self._mounts = next(c for c in self.collectors if isinstance(c, MountCollector))
        self._processes = next(c for c in self.collectors if isinstance(c, GpuProcessCollector))
        self._faults: dict[str, str] = {}
        self._faults_total = 0

    def sample(self, now: float, time: int) -> Sample:
        sample = Sample(float(time), {}, {})
        self.gpu.begin()  # the driver answers while the host is read
        for collector in self.collectors:
            try:
                collector.collect(now, sample)
            except Exception as error:  # noqa: BLE001 - one collector never stops the others
                self._failed(collector.name, error)
        self._disks.also(self._processes.data_files.loops())
        self._mounts.opened(self._processes.opened)
        return sample

    def events(self) -> list[Event]:
        return [] if self.nvml is None else [self._event(e) for e in self.nvml.take_events()]

    def inventory(self) -> Inventory:
        gpus = () if self.nvml is None else self.nvml.inventory()
        inventory = take_inventory(
            self.hostfs, gpus, host=self._host, data_paths=self._server.data_paths
        )
        limits = tuple(sorted(self._processes.job_limits, key=repr))
        return declared(replace(inventory, job_limits=limits), self._server)

    def gpu_library(self) -> str | None:
        return None if self.nvml is None else self.nvml.system.get("nvml_version")

    def read_at(self) -> Mapping[str, float]:
        return {c.name: c.read_at for c in self.collectors if c.read_at is not None}

    def cpu_seconds(self) -> float:
        return 0.0 if self.nvml is None else self.nvml.cpu_seconds()

    def errors_total(self) -> int:
        return self._faults_total + sum(c.errors_total for c in self.collectors)

    def unavailable(self) -> Mapping[str, str]:
        reasons = {}
        for collector in self.collectors:
            reasons.update(collector.unavailable())
        return {**reasons, **self._faults}

    def release(self) -> None:
        if self.nvml is not None:
            self.nvml.release()

    def resume(self) -> None:
        if self.nvml is not None:
            self.nvml.resume()

    def close(self) -> None:
        if self.nvml is not None:
            self.nvml.close()

    def _failed(self, name: str, error: Exception) -> None:
        self._faults_total += 1
        text = f"{type(error).__name__}: {error}"
        if self._faults.get(name) != text:
            _LOG.error("the collector %s failed: %s", name, text)
            _LOG.debug("the fault", exc_info=True)
        self._faults[name] = text

    def _event(self, event: NvmlEvent) -> Event:
        severity = _SEVERITY.get(event.kind, Severity.WARNING)
        _LOG.log(_LEVEL[severity], "%s: %s", event.kind.value.replace("_", " "), event.text)
        age = clock.monotonic() - event.time_monotonic
        return Event(
            time=clock.time() - age,
            host=self._host,
            kind=event.kind.value,
            text=event.text,
            severity=severity,
            gpu_uuid=event.gpu_uuid,
        )


def declared(inventory: Inventory, server: ServerSettings) -> Inventory:
    """The inventory with what the configuration says about the server."""
    measured = {disk.device: disk.read_bytes_per_second for disk in server.disk_benchmarks}
    return replace(
        inventory,
        block_devices=tuple(
            replace(device, benchmark_bytes_per_second=measured.get(device.name))
            for device in inventory.block_devices
        ),
        power_feed_watts=server.power_feed_watts,
        purpose=server.purpose,
        redundancy=server.redundancy,
        standby=server.standby,
        pinned_phases=tuple(server.pinned_phases),
        data_paths=server.data_paths,
        model=server.model,
        workloads=tuple(
            Workload(
                phase=work.phase,
                model=work.model,
                parameters=work.parameters,
                precision=work.precision,
                unit=work.unit,
                user=work.user,
                gpus=work.gpus,
            )
            for work in server.workloads
        ),
    )
