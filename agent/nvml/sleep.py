"""GPUs that the kernel has put to sleep: asking the driver would wake them.

A GPU whose power is managed at run time (`power/control` is `auto`, as on workstations with RTD3)
is `suspended` while nobody uses it (https://docs.kernel.org/power/runtime_pm.html). Reading
`runtime_status` does not wake it, any call of NVML for it does. NVML itself initialises a GPU only
when its handle is asked for (NVML API reference, nvmlInit_v2, nvmlDeviceGetHandleByPciBusId_v2).
"""

from __future__ import annotations

import math

from agent.host.hostfs import HostFs, KeptFile
from agent.nvml.types import GpuReading

_DRIVER = "/sys/bus/pci/drivers/nvidia"
_LOOK_AGAIN = 30.0
ASLEEP = "asleep to save power, and not woken for a reading"
ALL_ASLEEP = "every GPU is asleep to save power, and none is woken for a reading"


class Sleepers:
    """Which GPUs sleep, by PCI address. On a server, where none may, it costs a look in 30 s."""

    def __init__(self, hostfs: HostFs) -> None:
        self._hostfs = hostfs
        self._look_at = -math.inf
        self._managed: dict[str, KeptFile] = {}
        self._all: tuple[str, ...] = ()
        self.asleep: frozenset[str] = frozenset()

    @property
    def awake(self) -> list[str]:
        """The others, as NVML takes addresses."""
        return [address for address in self._all if address not in self.asleep]

    def look(self, now: float) -> None:
        """Look at them now; `now` is monotonic seconds."""
        if now >= self._look_at:
            self._look_at = now + _LOOK_AGAIN
            self._all = tuple(a for a in self._hostfs.names(_DRIVER) if a.count(":") == 2)
            self._managed = {
                address: self._managed.get(address)
                or self._hostfs.kept(f"{_DRIVER}/{address}/power/runtime_status")
                for address in self._all
                if self._hostfs.maybe(f"{_DRIVER}/{address}/power/control") == "auto"
            }
        if self._managed or self.asleep:
            self.asleep = frozenset(a for a, file in self._managed.items() if _suspended(file))


def _suspended(file: KeptFile) -> bool:
    try:
        return file.record().strip() in (b"suspended", b"suspending")
    except OSError:
        return False


def sleeping(uuid: str | None, index: int | None, name: str | None) -> GpuReading:
    """The reading of a GPU that sleeps."""
    return GpuReading(uuid, index, name, {}, {}, {}, ASLEEP, asleep=True)
