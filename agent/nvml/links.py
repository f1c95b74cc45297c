"""What a GPU's links carry: PCIe and NVLink, each by the best source that the driver has."""

from __future__ import annotations

import ctypes

from agent.nvml.fields import Throughput
from agent.nvml.rates import ByteRate, pcie_ceiling
from agent.probe import ReadingFailed, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent.nvml.device import Device

ALL_LINKS = 0xFFFFFFFF
"""Scope of a field that sums over all NVLinks (nvml.h, NVML_FI_DEV_NVLINK_*)."""
_KIBI = 1024


class Links:
    """The links of one GPU; its methods are sources of probes."""

    def __init__(self, device: Device) -> None:
        self._device = device
        nvml = device.driver.nvml
        self._pcie = (
            ("pcie_tx", nvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES),
            ("pcie_rx", nvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES),
        )
        self._replays = nvml.NVML_FI_DEV_PCIE_REPLAY_COUNTER
        # KiB up to NVLink 4, bytes from NVLink 5 on (nvml.h).
        self._nvlink = (
            ("nvlink_tx", nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX),
            ("nvlink_rx", nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX),
        )
        self._nvlink5 = (
            ("nvlink_tx", nvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES),
            ("nvlink_rx", nvml.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES),
        )
        nvlinks = [field for _, field in (*self._nvlink, *self._nvlink5)]
        self.fields = (self._replays, *(field for _, field in self._pcie), *nvlinks)
        """The fields that must be asked for."""
        self.scopes = dict.fromkeys(nvlinks, ALL_LINKS)
        self._rates = {field: ByteRate() for field in self.fields}
        self._throughput: Throughput | None = None
        self.ceiling: float | None = None
        """Bytes a second that the PCIe link carries at most, where that is known."""
        self.nvlinks: int | None = None
        """NVLinks that are up, where the driver tells it."""

    def find_limits(self) -> None:
        """Raises ReadingFailed for a lost GPU only."""
        self.nvlinks = self._nvlinks_up()
        device = self._device
        try:
            generation = device.number("nvmlDeviceGetMaxPcieLinkGeneration")
            width = device.number("nvmlDeviceGetMaxPcieLinkWidth")
        except ReadingFailed as failure:
            if failure.trouble is Trouble.LOST:
                raise
            return
        self.ceiling = pcie_ceiling(generation, width)

    def _nvlinks_up(self) -> int | None:
        """0 where the driver says that there is none."""
        device, nvml = self._device, self._device.driver.nvml
        state, up = ctypes.c_uint(), 0
        for link in range(nvml.NVML_NVLINK_MAX_LINKS):
            number, answer = ctypes.c_uint(link), ctypes.byref(state)
            call = "nvmlDeviceGetNvLinkState"
            code = device.driver.raw(device.index, call, device.handle, number, answer)
            if code == 0:
                up += state.value == nvml.NVML_FEATURE_ENABLED
                continue
            failure = device.driver.failure(code)
            if failure.trouble is Trouble.LOST:
                raise failure
            if link == 0:
                return 0 if code == nvml.NVML_ERROR_NOT_SUPPORTED else None
            break
        return up

    def pcie_counters(self, values: dict[str, float]) -> None:
        """By the byte counters (driver R555 and later)."""
        device = self._device
        counted = [(name, field, *device.fields.counter(field)) for name, field in self._pcie]
        for name, field, value, bits in counted:
            metric, rate = f"{name}_bytes_per_second", self._rates[field]
            found = rate.add(value, bits, device.now, self.ceiling)
            if found is not None:
                values[metric] = found
            if rate.dropped_total:
                device.dropped_total[metric] = rate.dropped_total

    def pcie_gpm(self, values: dict[str, float]) -> None:
        """By GPM, on drivers without byte counters."""
        self._keep_pcie(values, self._device.gpm.rates(("pcie_tx", "pcie_rx")))

    def pcie_throughput(self, values: dict[str, float]) -> None:
        """By the call of 20 ms, outside the tick."""
        if self._throughput is None:
            self._throughput = Throughput(self._device)
        rates = self._throughput.latest()
        self._keep_pcie(values, {f"pcie_{name}": rate for name, rate in rates.items()})

    def _keep_pcie(self, values: dict[str, float], rates: dict[str, float]) -> None:
        """A rate that the link cannot carry is none."""
        for name, rate in rates.items():
            metric = f"{name}_bytes_per_second"
            if self.ceiling is not None and rate > self.ceiling:
                self._device.drop(metric)
            else:
                values[metric] = rate

    def replays_field(self, values: dict[str, float]) -> None:
        """Packets that were sent again since the driver loaded."""
        values["pcie_replays_total"] = self._device.fields.value(self._replays)

    def nvlink_kibibytes(self, values: dict[str, float]) -> None:
        """By the counters of NVLink up to 4."""
        self._nvlink_counters(values, self._nvlink, _KIBI)

    def nvlink_bytes(self, values: dict[str, float]) -> None:
        """By the counters of NVLink 5."""
        self._nvlink_counters(values, self._nvlink5, 1)

    def _nvlink_counters(
        self, values: dict[str, float], fields: tuple[tuple[str, int], ...], unit: int
    ) -> None:
        for name, field in fields:
            count, bits = self._device.fields.counter(field)
            rate = self._rates[field].add(count, bits, self._device.now, None)
            if rate is not None:
                values[f"{name}_bytes_per_second"] = rate * unit

    def nvlink_gpm(self, values: dict[str, float]) -> None:
        """By GPM, where a link is up: a card without links would show 0, which is no absence."""
        if not self.nvlinks:
            raise ReadingFailed(Trouble.PERMANENT, "no NVLink is up")
        for name, rate in self._device.gpm.rates(("nvlink_tx", "nvlink_rx")).items():
            values[f"{name}_bytes_per_second"] = rate

    def close(self) -> None:
        """No further call on the handle."""
        if self._throughput is not None:
            self._throughput.stop()


__all__ = ["Links"]
