"""Activity of the multiprocessors, tensor cores and memory, by GPM (NVML, Hopper and later).

Two samples are taken at least 100 ms apart, and the library computes the metrics between them
(NVML API reference, "GPM Functions"). Here each tick takes one sample and keeps it for the next.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import struct

from agent.nvml.driver import DriverGone, plain
from agent.probe import ReadingFailed, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent.nvml.device import Device
    from agent.nvml.mig import Instance

ACTIVITY = ("sm_active_ratio", "sm_occupancy_ratio", "tensor_active_ratio", "dram_active_ratio")
SOONEST = 0.1
"""Seconds between two samples (nvml.h: "should be greater than 100ms")."""
_ROUNDING = 1.05
"""A ratio above 1 by less is measurement noise; above that it is no reading."""
_MEBI = 1024 * 1024
_METRIC = "4xId24x"
"""nvml.h, nvmlGpmMetric_t: id, code, value, and texts."""


class Gpm:
    """The GPM metrics of one card, or of one MIG instance of it."""

    def __init__(self, subject: Device | Instance, instance: int | None = None) -> None:
        self._subject = subject
        self._instance = instance
        nvml = subject.driver.nvml
        self._ids = {
            "sm_active_ratio": nvml.NVML_GPM_METRIC_SM_UTIL,
            "sm_occupancy_ratio": nvml.NVML_GPM_METRIC_SM_OCCUPANCY,
            "tensor_active_ratio": nvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
            "dram_active_ratio": nvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
            "pcie_tx": nvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC,
            "pcie_rx": nvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC,
            "nvlink_tx": nvml.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC,
            "nvlink_rx": nvml.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC,
        }
        self._samples: list[Any] = []
        self._taken_at: float | None = None
        self._request: Any = None
        self._answers = struct.Struct(_METRIC * len(self._ids))
        self._values: dict[str, float] = {}
        self._refusal: ReadingFailed | None = None

    def read(self, values: dict[str, float]) -> None:
        """Adds the activity since the tick before, 0..1; nothing at the first tick.

        Raises ReadingFailed where the card, the driver or the configuration has no GPM.
        """
        self._values = {}
        subject = self._subject
        if not self._samples:
            self._prepare()
        elapsed = None if self._taken_at is None else subject.now - self._taken_at
        if elapsed is not None and elapsed < SOONEST:
            return
        before, after = self._samples
        if self._instance is None:
            subject.call("nvmlGpmSampleGet", after)
        else:
            instance = ctypes.c_uint(self._instance)
            subject.card_call("nvmlGpmMigSampleGet", instance, after)
        self._samples = [after, before]
        self._taken_at = subject.now
        if elapsed is None:
            return
        request = self._request
        request.sample1, request.sample2 = before, after
        subject.driver.call(subject.index, "nvmlGpmMetricsGet", ctypes.byref(request))
        # All of them at once: two attributes of each entry would be made into objects.
        numbers = self._answers.unpack_from(request, type(request).metrics.offset)
        for name, code, value in zip(self._ids, numbers[0::2], numbers[1::2], strict=True):
            if code == 0 and 0.0 <= value < math.inf:
                self._values[name] = value
        self._keep(values)

    def _keep(self, values: dict[str, float]) -> None:
        for metric in ACTIVITY:
            percent = self._values.get(metric)
            if percent is None:
                self._subject.notes[metric] = "GPM does not tell it on this card"
            elif percent <= 100 * _ROUNDING:
                self._subject.notes.pop(metric, None)
                values[metric] = min(1.0, percent / 100)
            else:  # the DCGM of some drivers told 130 % under MIG: no share of time
                self._subject.drop(metric)

    def rates(self, names: tuple[str, str]) -> dict[str, float]:
        """Bytes per second of `pcie_tx` and such in this tick; empty at the first tick.

        Raises ReadingFailed where there is no GPM.
        """
        if self._refusal is not None:
            raise self._refusal
        if self._values and not any(name in self._values for name in names):
            raise ReadingFailed(Trouble.PERMANENT, "GPM does not tell it on this card")
        return {name: self._values[name] * _MEBI for name in names if name in self._values}

    def _prepare(self) -> None:
        try:
            self._check()
            self._samples = [self._allocate(), self._allocate()]
        except ReadingFailed as failure:
            if failure.trouble is Trouble.PERMANENT:
                self._refusal = failure
            raise
        nvml = self._subject.driver.nvml
        entry = plain(nvml.c_nvmlGpmMetric_t)
        fields = [
            ("version", ctypes.c_uint),
            ("numMetrics", ctypes.c_uint),
            ("sample1", nvml.c_nvmlGpmSample_t),
            ("sample2", nvml.c_nvmlGpmSample_t),
            ("metrics", entry * len(self._ids)),
        ]
        self._request = type("GpmMetricsGet", (ctypes.Structure,), {"_fields_": fields})()
        self._request.version = nvml.NVML_GPM_METRICS_GET_VERSION
        self._request.numMetrics = len(self._ids)
        for place, number in zip(self._request.metrics, self._ids.values(), strict=True):
            place.metricId = number

    def _check(self) -> None:
        subject = self._subject
        if not subject.settings.profiling:
            reason = "switched off by [gpu] profiling = false"
            raise ReadingFailed(Trouble.PERMANENT, reason)
        support = plain(subject.driver.nvml.c_nvmlGpmSupport_t)()
        support.version = subject.driver.nvml.NVML_GPM_SUPPORT_VERSION
        try:
            subject.card_call("nvmlGpmQueryDeviceSupport", ctypes.byref(support))
        except ReadingFailed as failure:
            if failure.trouble is not Trouble.PERMANENT:
                raise
            reason = f"no GPM here ({failure.reason}): it needs Hopper or later and driver R520"
            raise ReadingFailed(Trouble.PERMANENT, reason) from None
        if not support.isSupportedDevice:
            reason = "this card has no GPM (Hopper and later have it)"
            raise ReadingFailed(Trouble.PERMANENT, reason)

    def _allocate(self) -> Any:
        subject = self._subject
        sample = subject.driver.nvml.c_nvmlGpmSample_t()
        subject.driver.call(subject.index, "nvmlGpmSampleAlloc", ctypes.byref(sample))
        return sample

    def close(self) -> None:
        """Gives the samples' memory back; the card is not touched."""
        samples, self._samples = self._samples, []
        for sample in samples:
            with contextlib.suppress(DriverGone):
                self._subject.driver.raw(-1, "nvmlGpmSampleFree", sample)


__all__ = ["ACTIVITY", "Gpm"]
