"""MIG instances: the slices of one card, each read like a GPU of its own.

The driver tells memory and processes by the instance's own handle, activity by GPM for the GPU
instance (GI). Utilisation it does not tell under MIG at all (nvml.h,
nvmlDeviceGetUtilizationRates), and power, clocks and links are the card's.
"""

from __future__ import annotations

import ctypes
from collections import Counter

from agent.nvml.driver import available, plain
from agent.nvml.gpm import ACTIVITY, Gpm
from agent.probe import Probe, ProbeSet, ReadingFailed, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent.nvml.device import Device

_SHARED = "several compute instances share this GPU instance, and GPM tells them as one"
_CARD = "told of the whole card"
_OF_CARD = ("power_watts", "temperature_celsius", "sm_clock_hertz", "pcie_rx_bytes_per_second")
_UNTOLD = "the driver does not tell it under MIG"
_UNKNOWN = ("utilization_ratio", "memory_utilization_ratio")


class Instance:
    """One MIG instance under its handle."""

    def __init__(self, card: Device, handle: object, facts: dict[str, Any], shared: bool) -> None:
        self.driver = card.driver
        self.index = card.index
        self.handle = handle
        self.facts = facts
        self.name = f"{facts['gi']}/{facts['ci']}"
        self.identity = (ctypes.cast(handle, ctypes.c_void_p).value, facts)  # type: ignore[arg-type]
        self.settings = card.settings
        self.now = 0.0
        self.notes: dict[str, str] = dict.fromkeys(
            _UNKNOWN, "the driver does not tell it under MIG"
        )
        self.notes |= dict.fromkeys(_OF_CARD, _CARD)
        self._card = card
        self._memory = plain(card.driver.nvml.c_nvmlMemory_t)()
        self._gpm = Gpm(self, facts["gi"])
        probes = [Probe(("memory_used_bytes", "memory_total_bytes"), self._memory_used)]
        if shared:
            self.notes |= dict.fromkeys(ACTIVITY, _SHARED)
        else:
            probes.append(Probe(ACTIVITY, self._gpm.read))
        self._probes = ProbeSet(probes)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the instance."""
        self.driver.call(self.index, name, self.handle, *arguments)

    def card_call(self, name: str, *arguments: object) -> None:
        """Call a function of the card that it is a part of."""
        self._card.card_call(name, *arguments)

    def drop(self, metric: str) -> None:
        """Count a value that no card can have."""
        self._card.drop(metric)

    def memory_total(self) -> int | None:
        """Bytes of the instance's memory by the last reading."""
        return self._memory.total or None

    def read(self, now: float) -> dict[str, Any]:
        """The instance's row. Raises ReadingFailed for a lost card only."""
        self.now = now
        values = self._probes.read()
        unavailable = {**self.notes, **self._probes.unavailable()}
        return {**self.facts, "values": values, "unavailable": unavailable}

    def _memory_used(self, values: dict[str, float]) -> None:
        self.call("nvmlDeviceGetMemoryInfo", ctypes.byref(self._memory))
        total, used = available(self._memory.total, 64), available(self._memory.used, 64)
        if used > total:
            self.drop("memory_used_bytes")
            return
        values["memory_used_bytes"], values["memory_total_bytes"] = used, total

    def close(self) -> None:
        """Give the buffers back."""
        self._gpm.close()


def open_instances(card: Device) -> list[Instance]:
    """The instances that the card has now, none where MIG is off or unknown.

    Raises ReadingFailed for a lost card only.
    """
    found = list(_listed(card))
    cis = Counter(facts["gi"] for _, facts in found)
    return [Instance(card, handle, facts, cis[facts["gi"]] > 1) for handle, facts in found]


def _listed(card: Device) -> list[tuple[object, dict[str, Any]]]:
    driver, nvml, index = card.driver, card.driver.nvml, card.index
    now, pending = ctypes.c_uint(), ctypes.c_uint()
    listed: list[tuple[object, dict[str, Any]]] = []
    try:
        card.call("nvmlDeviceGetMigMode", ctypes.byref(now), ctypes.byref(pending))
        if now.value != nvml.NVML_DEVICE_MIG_ENABLE:
            return []
        most = card.number("nvmlDeviceGetMaxMigDeviceCount")
    except ReadingFailed as failure:
        if failure.trouble is Trouble.LOST:
            raise
        return []
    for position in range(most):
        handle = nvml.c_nvmlDevice_t()
        place = ctypes.c_uint(position)
        try:
            card.call("nvmlDeviceGetMigDeviceHandleByIndex", place, ctypes.byref(handle))
            gi = driver.number(index, "nvmlDeviceGetGpuInstanceId", handle)
            ci = driver.number(index, "nvmlDeviceGetComputeInstanceId", handle)
        except ReadingFailed as failure:
            if failure.trouble is Trouble.LOST:
                raise
            continue  # an empty place
        facts: dict[str, Any] = {"gi": gi, "ci": ci}
        try:
            name = driver.text(index, "nvmlDeviceGetName", handle)
            if " MIG " in name:
                facts["profile"] = name.rsplit(" MIG ", 1)[1]
            memory = plain(nvml.c_nvmlMemory_t)()
            driver.call(index, "nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
            facts["memory_bytes"] = memory.total
        except ReadingFailed as failure:
            if failure.trouble is Trouble.LOST:
                raise
        listed.append((handle, facts))
    return listed


__all__ = ["Instance", "open_instances"]
