"""The readings of one GPU: one call for many fields, and a few calls for the rest."""

from __future__ import annotations

import ctypes

from agent.nvml.driver import Driver, available, plain
from agent.nvml.fields import Fields, Settings
from agent.nvml.gpm import ACTIVITY, Gpm
from agent.nvml.links import Links
from agent.nvml.rates import TimeShare
from agent.probe import Probe, ProbeSet, ReadingFailed, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Device:
    """One GPU under its handle.

    `uuid` and `handle` belong together: a handle is never used once the GPU was lost, a new one
    is asked for by UUID.
    """

    def __init__(
        self, driver: Driver, index: int, uuid: str, handle: object, settings: Settings
    ) -> None:
        self.driver = driver
        self.index = index
        self.uuid = uuid
        self.handle = handle
        self.settings = settings
        self.name: str | None = None
        self.texts: dict[str, str] = {}
        self.notes: dict[str, str] = {}
        """Why a metric is absent although its probe answers."""
        self.dropped_total: dict[str, int] = {}
        """Values that no card can have, by metric."""
        self.unified = False
        """Whether its memory is the host's."""
        self.now = 0.0
        nvml = driver.nvml
        self._byref = ctypes.byref
        self._uint = ctypes.c_uint()
        self._uint_ref = ctypes.byref(self._uint)
        self._long = ctypes.c_ulonglong()
        self._long_ref = ctypes.byref(self._long)
        self._ecc_total: int | None = None
        self._utilization_buffer = plain(nvml.c_nvmlUtilization_t)()
        self._memory_buffer = plain(nvml.c_nvmlMemory_v2_t)()
        self._memory_v1_buffer = plain(nvml.c_nvmlMemory_t)()
        self._shares = [TimeShare() for _ in range(4)]  # in the order of _throttle
        self._energy = nvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION
        self._power = nvml.NVML_FI_DEV_POWER_AVERAGE
        self._throttle = (
            nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
            nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
            nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
            nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP,
        )
        self.gpm = Gpm(self)
        self.links = Links(self)
        self._hot = nvml.NVML_FI_DEV_MEMORY_TEMP
        self.fields = Fields(
            self,
            (self._energy, self._power, self._hot, *self._throttle, *self.links.fields),
            self.links.scopes,
        )
        self.every_tick = ProbeSet(
            (
                Probe(("utilization_ratio", "memory_utilization_ratio"), self._utilization),
                Probe(
                    ("memory_used_bytes", "memory_total_bytes", "memory_reserved_bytes"),
                    self._memory_v2,
                    self._memory_v1,
                ),
                Probe(("power_watts",), self._power_average, self._power_usage),
                Probe(("energy_joules_total",), self._energy_field, self._energy_call),
                Probe(ACTIVITY, self.gpm.read),
                Probe(
                    ("pcie_tx_bytes_per_second", "pcie_rx_bytes_per_second"),
                    self.links.pcie_counters,
                    self.links.pcie_gpm,
                    self.links.pcie_throughput,
                ),
                Probe(
                    ("throttle_thermal_ratio", "throttle_power_ratio", "throttle_power_cap_ratio"),
                    self._throttle_times,
                    self._event_reasons,
                    self._throttle_reasons,
                ),
                Probe(
                    ("nvlink_tx_bytes_per_second", "nvlink_rx_bytes_per_second"),
                    self.links.nvlink_kibibytes,
                    self.links.nvlink_bytes,
                    self.links.nvlink_gpm,
                ),
            )
        )
        self.slowly = ProbeSet(
            (
                Probe(("temperature_celsius",), self._temperature, self._temperature_versioned),
                Probe(("memory_temperature_celsius",), self._memory_temperature),
                Probe(("sm_clock_hertz",), self._sm_clock),
                Probe(("pcie_replays_total",), self.links.replays_field, self._replays),
                Probe(("encoder_ratio",), self._encoder),
                Probe(("decoder_ratio",), self._decoder),
                Probe(("ecc_uncorrected_errors",), self._ecc),
            )
        )
        self.rarely = ProbeSet(
            (
                Probe(("power_limit_watts",), self._power_limit),
                Probe(("memory_clock_hertz",), self._memory_clock),
                Probe(("pcie_link_generation",), self._link_generation),
                Probe(("pcie_link_width",), self._link_width),
                Probe(_REMAPS, self._remapped_rows),
            )
        )
        self._unavailable: dict[str, str] = {}
        self._unavailable_at: tuple[int, dict[str, str]] = (-1, {})
        self._errors_total, self._errors_at = 0, -1
        self.slow_values: dict[str, float] = {}
        self.rare_values: dict[str, float] = {}

    def call(self, name: str, *arguments: object) -> None:
        code = self.driver.raw(self.index, name, self.handle, *arguments)
        if code:
            raise self.driver.failure(code)

    def card_call(self, name: str, *arguments: object) -> None:
        """As `call`: this is the card itself."""
        self.driver.call(self.index, name, self.handle, *arguments)

    def number(self, name: str, *arguments: object) -> int:
        """A 32-bit number, in a buffer that is kept."""
        self.call(name, *arguments, self._uint_ref)
        return available(self._uint.value, 32)

    def read(self, now: float) -> dict[str, float]:
        """The readings of a tick at `now`, seconds that never step.

        Raises ReadingFailed for a GPU that is lost or answers nothing, DriverGone for a driver
        that is gone.
        """
        self.now = now
        self.fields.refresh()
        values = self.every_tick.read()
        if not values:
            reasons = self.every_tick.unavailable().values()
            raise ReadingFailed(Trouble.TRANSIENT, next(iter(reasons), "it answers nothing"))
        values.update(self.slow_values)
        return values

    def read_slowly(self, *, rarely: bool = True) -> None:
        """Refresh what changes slowly (some of it `fields`, as last refreshed), with `rarely` what
        changes seldom too. Raises as `read`."""
        if rarely:
            self.rare_values = self.rarely.read()
        self.slow_values = {**self.rare_values, **self.slowly.read()}

    def memory_total(self) -> int | None:
        """Bytes of device memory by the last reading."""
        return self._memory_buffer.total or self._memory_v1_buffer.total or None

    def unavailable(self) -> dict[str, str]:
        """Absent metrics with their reasons."""
        known = self._changes(), self.notes
        if known != self._unavailable_at:
            self._unavailable_at = known[0], dict(self.notes)
            self._unavailable = dict(self.notes)
            for probes in (self.every_tick, self.slowly, self.rarely):
                self._unavailable |= probes.unavailable()
        return self._unavailable

    @property
    def errors_total(self) -> int:
        """Readings that failed and were tried again."""
        changes = self._changes()
        if changes != self._errors_at:
            self._errors_at = changes
            sets = (self.every_tick, self.slowly, self.rarely)
            self._errors_total = sum(probes.errors_total for probes in sets)
        return self._errors_total

    def _changes(self) -> int:
        return self.every_tick.changes + self.slowly.changes + self.rarely.changes

    def _keep_ratio(self, values: dict[str, float], metric: str, percent: int) -> None:
        if 0 <= percent <= 100:
            values[metric] = percent / 100
        else:
            self.drop(metric)

    def drop(self, metric: str) -> None:
        """Count a value that no card can have."""
        self.dropped_total[metric] = self.dropped_total.get(metric, 0) + 1

    def _utilization(self, values: dict[str, float]) -> None:
        buffer = self._utilization_buffer
        self.call("nvmlDeviceGetUtilizationRates", self._byref(buffer))
        self._keep_ratio(values, "utilization_ratio", buffer.gpu)
        self._keep_ratio(values, "memory_utilization_ratio", buffer.memory)

    def _memory_v2(self, values: dict[str, float]) -> None:
        buffer = self._memory_buffer
        buffer.version = self.driver.nvml.nvmlMemory_v2
        try:
            self.call("nvmlDeviceGetMemoryInfo_v2", self._byref(buffer))
        except ReadingFailed as failure:
            if failure.trouble is Trouble.TRANSIENT and "memory_api" not in self.texts:
                # Some drivers answer "unknown error" to a version that they do not know.
                raise ReadingFailed(Trouble.PERMANENT, failure.reason) from None
            raise
        self.texts["memory_api"] = "v2"
        self._keep_memory(values, buffer)
        values["memory_reserved_bytes"] = buffer.reserved

    def _memory_v1(self, values: dict[str, float]) -> None:
        buffer = self._memory_v1_buffer
        self.call("nvmlDeviceGetMemoryInfo", self._byref(buffer))
        self.texts["memory_api"] = "v1"
        self.notes["memory_reserved_bytes"] = "this driver counts it as used memory"
        self._keep_memory(values, buffer)

    def _keep_memory(self, values: dict[str, float], buffer: Any) -> None:
        if self.unified:
            raise ReadingFailed(Trouble.PERMANENT, "the GPU shares the host's memory (unified)")
        total, used = available(buffer.total, 64), available(buffer.used, 64)
        if used > total:
            self.drop("memory_used_bytes")
            return
        values["memory_used_bytes"] = used
        values["memory_total_bytes"] = total

    def _power_average(self, values: dict[str, float]) -> None:
        milliwatts = self.fields.value(self._power)
        if not milliwatts:
            raise ReadingFailed(Trouble.PERMANENT, "the driver answers 0 W")
        values["power_watts"] = milliwatts / 1000

    def _power_usage(self, values: dict[str, float]) -> None:
        values["power_watts"] = self.number("nvmlDeviceGetPowerUsage") / 1000

    def _energy_field(self, values: dict[str, float]) -> None:
        values["energy_joules_total"] = self.fields.value(self._energy) / 1000

    def _energy_call(self, values: dict[str, float]) -> None:
        self.call("nvmlDeviceGetTotalEnergyConsumption", self._byref(self._long))
        values["energy_joules_total"] = available(self._long.value, 64) / 1000

    def _temperature(self, values: dict[str, float]) -> None:
        celsius = self.number("nvmlDeviceGetTemperature", self.driver.nvml.NVML_TEMPERATURE_GPU)
        values["temperature_celsius"] = celsius

    def _temperature_versioned(self, values: dict[str, float]) -> None:
        nvml = self.driver.nvml
        buffer = nvml.c_nvmlTemperature_v1_t()
        buffer.version = nvml.nvmlTemperature_v1
        buffer.sensorType = nvml.NVML_TEMPERATURE_GPU
        self.call("nvmlDeviceGetTemperatureV", self._byref(buffer))
        values["temperature_celsius"] = buffer.temperature

    def _memory_temperature(self, values: dict[str, float]) -> None:
        celsius = self.fields.value(self._hot)
        if not celsius:  # cards whose memory has no sensor answer 0
            raise ReadingFailed(Trouble.PERMANENT, "the card's memory has no sensor")
        values["memory_temperature_celsius"] = celsius

    def _sm_clock(self, values: dict[str, float]) -> None:
        kind = self.driver.nvml.NVML_CLOCK_SM
        values["sm_clock_hertz"] = self.number("nvmlDeviceGetClockInfo", kind) * 1_000_000

    def _memory_clock(self, values: dict[str, float]) -> None:
        kind = self.driver.nvml.NVML_CLOCK_MEM
        values["memory_clock_hertz"] = self.number("nvmlDeviceGetClockInfo", kind) * 1_000_000

    def _throttle_times(self, values: dict[str, float]) -> None:
        # All are read before one is counted: where one fails, none has moved.
        a, b, c, d = map(self.fields.value, self._throttle)
        first, second, third, fourth = self._shares
        software, hardware = first.add(a, self.now), second.add(b, self.now)
        brake, cap = third.add(c, self.now), fourth.add(d, self.now)
        if software is not None and hardware is not None:
            values["throttle_thermal_ratio"] = max(software, hardware)
        if brake is not None:
            values["throttle_power_ratio"] = brake
        if cap is not None:
            values["throttle_power_cap_ratio"] = cap

    def _event_reasons(self, values: dict[str, float]) -> None:
        self._reasons(values, "nvmlDeviceGetCurrentClocksEventReasons")

    def _throttle_reasons(self, values: dict[str, float]) -> None:
        self._reasons(values, "nvmlDeviceGetCurrentClocksThrottleReasons")  # before R535

    def _reasons(self, values: dict[str, float], function: str) -> None:
        """Whether it is slowed at this instant: a window's mean is then the share of its ticks."""
        nvml = self.driver.nvml
        self.call(function, self._byref(self._long))
        reasons = available(self._long.value, 64)
        thermal = (
            nvml.nvmlClocksEventReasonSwThermalSlowdown
            | nvml.nvmlClocksEventReasonHwThermalSlowdown
        )
        values["throttle_thermal_ratio"] = float(bool(reasons & thermal))
        brake = nvml.nvmlClocksEventReasonHwPowerBrakeSlowdown
        values["throttle_power_ratio"] = float(bool(reasons & brake))
        cap = nvml.nvmlClocksEventReasonSwPowerCap
        values["throttle_power_cap_ratio"] = float(bool(reasons & cap))

    def _encoder(self, values: dict[str, float]) -> None:
        self._codec(values, "encoder_ratio", "nvmlDeviceGetEncoderUtilization")

    def _decoder(self, values: dict[str, float]) -> None:
        self._codec(values, "decoder_ratio", "nvmlDeviceGetDecoderUtilization")

    def _codec(self, values: dict[str, float], metric: str, function: str) -> None:
        """Its first number is percent, its second the length of the driver's own interval."""
        percent, interval = ctypes.c_uint(), ctypes.c_uint()
        self.call(function, self._byref(percent), self._byref(interval))
        self._keep_ratio(values, metric, percent.value)

    def _power_limit(self, values: dict[str, float]) -> None:
        values["power_limit_watts"] = self.number("nvmlDeviceGetEnforcedPowerLimit") / 1000

    def _replays(self, values: dict[str, float]) -> None:
        values["pcie_replays_total"] = self.number("nvmlDeviceGetPcieReplayCounter")

    def _link_generation(self, values: dict[str, float]) -> None:
        values["pcie_link_generation"] = self.number("nvmlDeviceGetCurrPcieLinkGeneration")

    def _link_width(self, values: dict[str, float]) -> None:
        values["pcie_link_width"] = self.number("nvmlDeviceGetCurrPcieLinkWidth")

    def _ecc(self, values: dict[str, float]) -> None:
        """Errors that are new since the last reading; those before the first are history."""
        nvml = self.driver.nvml
        kind, since = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        self.call("nvmlDeviceGetTotalEccErrors", kind, since, self._long_ref)
        total, before = available(self._long.value, 64), self._ecc_total
        values["ecc_uncorrected_errors"] = 0.0 if before is None else float(max(0, total - before))
        self._ecc_total = total

    def _remapped_rows(self, values: dict[str, float]) -> None:
        counts = [ctypes.c_uint() for _ in range(4)]
        self.call("nvmlDeviceGetRemappedRows", *map(self._byref, counts))
        _, uncorrected, pending, failed = (available(count.value, 32) for count in counts)
        for metric, value in zip(_REMAPS, (uncorrected, pending, failed), strict=True):
            values[metric] = float(value)

    def close(self) -> None:
        """Let go of the handle."""
        self.gpm.close()
        self.links.close()

    def find_limits(self, name: str | None) -> None:
        """What the links can carry at most, and whose memory it is. Raises for a lost GPU."""
        self.unified = name is not None and any(part in name for part in _UNIFIED)
        if self.unified:
            self.texts["memory_kind"] = "unified"
        self.links.find_limits()


_REMAPS = ("remapped_rows_uncorrected", "remap_pending", "remap_failed")
# GPUs on one memory with their processors: DGX Spark (GB10) and Jetson modules. The driver answers
# NOT_SUPPORTED or the host's total (NVIDIA's DGX Spark user guide, "nvidia-smi"; Jetson forums).
_UNIFIED = ("GB10", "Orin", "Thor", "Tegra", "Jetson", "Xavier")
