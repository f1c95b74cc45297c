"""XID errors as the driver tells them: an event set that is asked at each tick, without waiting."""

from __future__ import annotations

import ctypes

from agent.nvml.driver import Driver, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent.nvml.device import Device

_MOST = 32
"""Events taken in one tick; a storm is told in the next ticks."""


class XidEvents:
    """The XIDs of the GPUs that were registered. Where the driver has no events, it is not `on`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        nvml = driver.nvml
        self._set = nvml.c_nvmlEventSet_t()
        self._data = plain(nvml.c_nvmlEventData_t)()
        self._uuids: dict[int, str] = {}
        self.on = driver.raw(-1, "nvmlEventSetCreate", ctypes.byref(self._set)) == 0

    def register(self, device: Device) -> None:
        """Has the XIDs of a GPU told. Some GPUs and guests do not support it: then none is."""
        if not self.on:
            return
        kind = ctypes.c_ulonglong(self._driver.nvml.nvmlEventTypeXidCriticalError)
        code = self._driver.raw(
            device.index, "nvmlDeviceRegisterEvents", device.handle, kind, self._set
        )
        if code == 0:
            self._uuids[_address(device.handle)] = device.uuid

    def take(self) -> dict[str, list[int]]:
        """The XIDs since the last call by UUID, with an empty list for each GPU that has none."""
        found: dict[str, list[int]] = {uuid: [] for uuid in self._uuids.values()}
        if not self._uuids:
            return found
        data = ctypes.byref(self._data)
        for _ in range(_MOST):
            if self._driver.raw(-1, "nvmlEventSetWait_v2", self._set, data, ctypes.c_uint(0)):
                break  # a timeout: nothing more; or a GPU that is lost, which its readings tell
            uuid = self._uuids.get(_address(self._data.device))
            if uuid is not None:
                found[uuid].append(int(self._data.eventData))
        return found


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


__all__ = ["XidEvents"]
