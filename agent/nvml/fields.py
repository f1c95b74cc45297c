"""Many fields in one call, and the one reading that is too slow for a tick."""

from __future__ import annotations

import ctypes
import struct
import threading
import time

from agent.nvml.driver import available, plain
from agent.probe import ReadingFailed, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent.nvml.device import Device


_FIELD_VALUE = "24xIIQ"
"""nvml.h, nvmlFieldValue_t: id, scope, time stamp and latency, which are passed over; type of the
value, code, and a union of the values, each of which lies in its lowest bytes (NVIDIA's machines
are little-endian)."""


class Settings:
    """What the parent asks of the child's readings, in seconds."""

    __slots__ = ("deadline", "profiling", "throughput_interval")

    def __init__(
        self, deadline: float = 5.0, throughput_interval: float = 2.0, profiling: bool = True
    ) -> None:
        self.deadline = deadline
        self.throughput_interval = throughput_interval
        self.profiling = profiling
        """Whether GPM may be asked."""


class Fields:
    """Many fields in one call; a field that the card has not is not asked for again."""

    def __init__(self, device: Device, ids: tuple[int, ...], scopes: dict[int, int]) -> None:
        self._device = device
        self._scopes = scopes
        self._refused: dict[int, ReadingFailed] = {}
        self._failed: ReadingFailed | None = None
        self._answered: set[int] = set()
        self._bits = self._widths()
        self._steady: tuple[int, ...] = ()
        self._entry = plain(device.driver.nvml.c_nvmlFieldValue_t)
        self._ask(ids)

    def _widths(self) -> dict[int, int]:
        nvml = self._device.driver.nvml
        return {
            nvml.NVML_VALUE_TYPE_UNSIGNED_INT: 32,
            nvml.NVML_VALUE_TYPE_UNSIGNED_LONG: ctypes.sizeof(ctypes.c_ulong) * 8,
            nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: 64,
        }

    def _ask(self, ids: tuple[int, ...]) -> None:
        array = (self._entry * len(ids))()
        for entry, field in zip(array, ids, strict=True):
            entry.fieldId, entry.scopeId = field, self._scopes.get(field, 0)
        self._array, self._count = array, ctypes.c_int(len(ids))
        self._ids, self._at = ids, {field: i for i, field in enumerate(ids)}
        self._layout = struct.Struct(_FIELD_VALUE * len(ids))
        self._types = self._codes = self._values = (0,) * len(ids)
        self._masks = (0,) * len(ids)
        self._known: dict[int, int] = {}

    def refresh(self) -> None:
        """Ask for all fields. Raises ReadingFailed for a lost GPU only."""
        if not self._ids or (self._failed and self._failed.trouble is Trouble.PERMANENT):
            return
        self._failed = None
        try:
            self._device.call("nvmlDeviceGetFieldValues", self._count, self._array)
        except ReadingFailed as failure:
            if failure.trouble is Trouble.LOST:
                raise
            self._failed = failure
            return
        # All of them at once: three attributes of each entry would be made into objects.
        numbers = self._layout.unpack_from(self._array)
        types, codes, self._values = numbers[0::3], numbers[1::3], numbers[2::3]
        if codes != self._steady or types != self._types:
            self._types, self._codes = types, codes
            self._sort_out()
        # A value with all its bits set is none: `counter` says so.
        self._known = {
            field: value & mask
            for field, value, mask in zip(self._ids, self._values, self._masks, strict=True)
            if value & mask != mask
        }

    def _sort_out(self) -> None:
        """Look at the codes and types, which have changed."""
        refused = False
        for field, code in zip(self._ids, self._codes, strict=True):
            if not code:
                self._answered.add(field)
            elif field not in self._answered:
                refusal = self._device.driver.failure(code)
                if refusal.trouble is Trouble.PERMANENT:
                    self._refused[field] = refusal
                    refused = True
        self._steady = self._codes
        self._masks = tuple(
            0 if code else (1 << self._bits.get(kind, 0)) - 1
            for code, kind in zip(self._codes, self._types, strict=True)
        )
        if refused:
            self._ask(tuple(field for field in self._ids if field not in self._refused))
            self.refresh()

    def counter(self, field: int) -> tuple[int, int]:
        """An unsigned value and the bits of its type. Raises ReadingFailed."""
        if self._failed is not None:
            raise self._failed
        known = self._known.get(field)
        if known is not None:
            return known, self._bits[self._types[self._at[field]]]
        if field in self._refused:
            raise self._refused[field]
        at = self._at[field]
        if self._codes[at]:
            raise self._device.driver.failure(self._codes[at])
        bits = self._bits.get(self._types[at])
        if bits is None:
            raise ReadingFailed(Trouble.PERMANENT, f"a value of type {self._types[at]}")
        return available((1 << bits) - 1, bits), bits

    def value(self, field: int) -> int:
        """An unsigned value. Raises ReadingFailed."""
        known = self._known.get(field) if self._failed is None else None
        return self.counter(field)[0] if known is None else known


class Throughput:
    """PCIe throughput where the card has no byte counters.

    Each call sleeps for 20 ms in the driver, so it is made in a thread of its own, outside the
    tick and less often; one thread a GPU, so that one that never returns holds up no other.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._rates: dict[str, float] = {}
        self._called_at = time.monotonic()
        self._failure: ReadingFailed | None = None
        self._stop = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def latest(self) -> dict[str, float]:
        """Bytes per second by direction; empty before the first answer. Raises ReadingFailed."""
        if self._failure is not None:
            raise self._failure
        now, settings = time.monotonic(), self._device.settings
        if now - self._called_at > settings.throughput_interval + settings.deadline:
            reason = "nvmlDeviceGetPcieThroughput does not return"
            raise ReadingFailed(Trouble.TRANSIENT, reason)
        return self._rates

    def stop(self) -> None:
        """No call after the one in progress: the handle is no longer to be used."""
        self._stop.set()

    def _run(self) -> None:
        device, nvml = self._device, self._device.driver.nvml
        function = device.driver.function("nvmlDeviceGetPcieThroughput")
        ways = (("tx", nvml.NVML_PCIE_UTIL_TX_BYTES), ("rx", nvml.NVML_PCIE_UTIL_RX_BYTES))
        value = ctypes.c_uint()
        while not self._stop.is_set():
            rates = {}
            for name, way in ways:
                self._called_at = time.monotonic()
                code = (
                    function(device.handle, way, ctypes.byref(value))
                    if function is not None
                    else nvml.NVML_ERROR_FUNCTION_NOT_FOUND
                )
                if code:
                    failure = device.driver.failure(code)
                    self._failure = failure
                    if failure.trouble is not Trouble.TRANSIENT:
                        return
                elif value.value != 0xFFFFFFFF:
                    rates[name] = value.value * 1000.0  # nvml.h: KB/s
                    self._failure = None
            self._rates = rates
            self._stop.wait(device.settings.throughput_interval)
