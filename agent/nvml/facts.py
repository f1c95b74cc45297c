"""What a GPU is, and which processes are on it."""

from __future__ import annotations

import ctypes

from agent.nvml.driver import Driver, plain
from agent.probe import ReadingFailed, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from agent.nvml.device import Device
    from agent.nvml.mig import Instance

PID_MAX = 4_194_304
"""PID_MAX_LIMIT of 64-bit Linux (include/linux/threads.h)."""
ROOM = 128
"""Entries to spare in a list: enough for one call to do, on most servers."""
MOST_PROCESSES = 4096
MOST_SAMPLES = 65_536
_VIRTUAL = {1: "passthrough", 2: "vgpu", 3: "vgpu_host", 4: "vsga_host"}
"""nvmlGpuVirtualizationMode_t; 0 is a card on the machine itself."""


def system_facts(driver: Driver) -> dict[str, str]:
    """Versions of driver, NVML and CUDA, where they are told."""
    facts: dict[str, str] = {}
    for name, function in (
        ("driver_version", "nvmlSystemGetDriverVersion"),
        ("nvml_version", "nvmlSystemGetNVMLVersion"),
    ):
        text = _tried(driver.text, -1, function)
        if text:
            facts[name] = text
    version = _tried(driver.number, -1, "nvmlSystemGetCudaDriverVersion_v2")
    if version:
        facts["cuda_version"] = f"{version // 1000}.{version % 1000 // 10}"
    return facts


def device_facts(device: Device) -> dict[str, Any]:
    """What does not change while the driver is loaded. Raises ReadingFailed for a lost GPU."""
    facts: dict[str, Any] = {}
    pci = plain(device.driver.nvml.nvmlPciInfo_t)()
    if _done(device.call, "nvmlDeviceGetPciInfo_v3", ctypes.byref(pci)):
        facts["pci_bus_id"] = pci.busId.decode("ascii", "backslashreplace").lower()
        # The low half is the vendor (pci.ids numbers devices within their vendor).
        facts["pci_device_id"] = f"{pci.pciDeviceId >> 16:04x}"
        facts["pci_subsystem_id"] = f"{pci.pciSubSystemId >> 16:04x}"
    major, minor = ctypes.c_int(), ctypes.c_int()
    capability = "nvmlDeviceGetCudaComputeCapability"
    if _done(device.call, capability, ctypes.byref(major), ctypes.byref(minor)):
        facts["compute_capability"] = f"{major.value}.{minor.value}"
    for name, function in (
        ("pcie_max_generation", "nvmlDeviceGetMaxPcieLinkGeneration"),
        ("pcie_max_width", "nvmlDeviceGetMaxPcieLinkWidth"),
        ("pcie_card_max_generation", "nvmlDeviceGetGpuMaxPcieLinkGeneration"),
    ):
        number = _tried(device.number, function)
        if number:
            facts[name] = number
    if device.links.nvlinks is not None:
        facts["nvlink_links"] = device.links.nvlinks
    kind = _tried(device.number, "nvmlDeviceGetVirtualizationMode")
    if kind in _VIRTUAL:
        facts["virtualization"] = _VIRTUAL[kind]
    return facts


def nvlink_peers(devices: list[Device]) -> dict[str, list[str]]:
    """For each GPU the others that it reaches over NVLink; left out where that is unknown."""
    peers: dict[str, list[str]] = {}
    for device in devices:
        nvml = device.driver.nvml
        status = {
            other.uuid: _tried(
                device.number,
                "nvmlDeviceGetP2PStatus",
                other.handle,
                nvml.NVML_P2P_CAPS_INDEX_NVLINK,
            )
            for other in devices
            if other is not device
        }
        if None not in status.values():
            peers[device.uuid] = [u for u, s in status.items() if s == nvml.NVML_P2P_STATUS_OK]
    return peers


def _tried(reading: Callable[..., Any], *arguments: object) -> Any:
    """What the reading gives, None where the GPU has it not. Raises for a lost GPU."""
    try:
        return reading(*arguments)
    except ReadingFailed as failure:
        if failure.trouble is Trouble.LOST:
            raise
        return None


def _done(call: Callable[..., None], *arguments: object) -> bool:
    """Whether the call succeeded. Raises for a lost GPU."""
    try:
        call(*arguments)
    except ReadingFailed as failure:
        if failure.trouble is Trouble.LOST:
            raise
        return False
    return True


KINDS = (("compute", "Compute"), ("graphics", "Graphics"))
VERSIONS = ("_v3", "_v2")
"""Versions of the lists, the preferred one first; their entries have one layout."""


class Processes:
    """The processes of one GPU, and the share of the multiprocessors that each had."""

    def __init__(self, device: Device | Instance) -> None:
        self._device = device
        self._versions: dict[str, tuple[str, ...]] = {kind: VERSIONS for kind, _ in KINDS}
        self._seen: int | None = None
        nvml = device.driver.nvml
        self._entry = plain(nvml.c_nvmlProcessInfo_v2_t)
        self._sample = plain(nvml.c_nvmlProcessUtilizationSample_t)
        self.unavailable: dict[str, str] = {}

    def read(self) -> list[dict[str, Any]]:
        """One entry a process and kind. Entries that no process can have are dropped and counted.

        Raises ReadingFailed for a lost GPU.
        """
        listed: list[dict[str, Any]] = [
            {"pid": pid, "kind": kind, **({} if memory is None else {"memory_bytes": memory})}
            for kind, name in KINDS
            for pid, memory in self._list(kind, name)
        ]
        if listed:
            shares = self._shares()
            for entry in listed:
                if (share := shares.get(entry["pid"])) is not None:
                    entry["sm_ratio"] = share
        return listed

    def _list(self, kind: str, name: str) -> list[tuple[int, int | None]]:
        for version in self._versions[kind]:
            try:
                entries = self._fill(f"nvmlDeviceGet{name}RunningProcesses{version}")
            except ReadingFailed as failure:
                if failure.trouble is Trouble.LOST:
                    raise
                self.unavailable[kind] = failure.reason
                if failure.trouble is Trouble.PERMANENT and len(self._versions[kind]) > 1:
                    self._versions[kind] = self._versions[kind][1:]
                    continue
                return []
            self.unavailable.pop(kind, None)
            credible = [entry for entry in entries if self._credible(*entry)]
            if len(credible) == len(entries) or version == VERSIONS[-1]:
                return credible
        return []

    def _credible(self, pid: int, memory: int | None) -> bool:
        """Whether a process can be so.

        Some drivers of the 535 series gave the third version's entries another layout, so that
        every entry but the first was read from the wrong place; the second version is then right.
        """
        total = self._device.memory_total()
        if 0 < pid <= PID_MAX and (memory is None or total is None or memory <= total):
            return True
        self._device.drop("process")
        return False

    def _fill(self, function: str) -> list[tuple[int, int | None]]:
        """Process ids and bytes of memory, None where that is not available."""
        device, nvml = self._device, self._device.driver.nvml
        driver, room, absent = device.driver, ROOM, nvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value
        code = 0
        for _ in range(3):
            # Twice the room: some drivers of the 535 series wrote entries longer than asked for.
            array = (self._entry * (room * 2))()
            count = ctypes.c_uint(room)
            code = driver.raw(device.index, function, device.handle, ctypes.byref(count), array)
            if not code:
                entries = ((entry.pid, entry.usedGpuMemory) for entry in array[: count.value])
                return [(pid, None if memory == absent else memory) for pid, memory in entries]
            if code != nvml.NVML_ERROR_INSUFFICIENT_SIZE:
                break
            room = min(count.value, MOST_PROCESSES) + ROOM
        raise driver.failure(code)

    def _shares(self) -> dict[int, float]:
        """Each process's mean share of the multiprocessors in the samples since the last call.

        The first call gives none: its samples may be of any age. NOT_FOUND is no failure: no
        process has worked since.
        """
        device, nvml = self._device, self._device.driver.nvml
        driver, function = device.driver, "nvmlDeviceGetProcessUtilization"
        before = self._seen or 0
        since, room = ctypes.c_ulonglong(before), ROOM
        array, count, code = (self._sample * room)(), ctypes.c_uint(room), 0
        for _ in range(3):
            array, count = (self._sample * room)(), ctypes.c_uint(room)
            code = driver.raw(
                device.index, function, device.handle, array, ctypes.byref(count), since
            )
            if code != nvml.NVML_ERROR_INSUFFICIENT_SIZE:
                break
            room = min(count.value, MOST_SAMPLES) + ROOM
        self._note(code)
        if code:
            return {}
        sums: dict[int, tuple[int, int]] = {}
        seen = before
        for sample in array[: min(count.value, room)]:
            if sample.timeStamp <= before or not 0 < sample.pid <= PID_MAX:
                continue
            seen = max(seen, sample.timeStamp)
            if sample.smUtil > 100:
                device.drop("sm_ratio")
                continue
            total, number = sums.get(sample.pid, (0, 0))
            sums[sample.pid] = (total + sample.smUtil, number + 1)
        first, self._seen = self._seen is None, seen
        if first:
            return {}
        return {pid: total / number / 100 for pid, (total, number) in sums.items()}

    def _note(self, code: int) -> None:
        nvml = self._device.driver.nvml
        if code in (0, nvml.NVML_ERROR_NOT_FOUND):
            self.unavailable.pop("sm_ratio", None)
            return
        failure = self._device.driver.failure(code)
        if failure.trouble is Trouble.LOST:
            raise failure
        self.unavailable["sm_ratio"] = failure.reason
