"""Rates from the driver's counters, and what a PCIe link can carry."""

from __future__ import annotations

from agent.probe import ReadingFailed, Trouble

# Raw rate of a lane in GT/s and the share of it that carries data (PCI Express Base
# Specification: 8b/10b up to generation 2, 128b/130b for 3 to 5, flits of 242 in 256 bytes in 6).
_LANES = {
    1: (2.5, 8 / 10),
    2: (5.0, 8 / 10),
    3: (8.0, 128 / 130),
    4: (16.0, 128 / 130),
    5: (32.0, 128 / 130),
    6: (64.0, 242 / 256),
}
_JITTER = 1.05
"""A counter is read a moment before or after its time is taken."""
_SOONEST = 1.0
"""Seconds after which the next reading is expected."""


def pcie_ceiling(generation: int | None, width: int | None) -> float | None:
    """Bytes a second that a link carries in one direction; None where it is not known."""
    if generation not in _LANES or not width:
        return None
    gigatransfers, share = _LANES[generation]
    return gigatransfers * 1e9 * share / 8 * width


class NarrowCounter(ReadingFailed):
    """The counter may go round between two readings, so no rate can be told from it."""

    def __init__(self) -> None:
        super().__init__(Trouble.PERMANENT, "the byte counter is too narrow for this link")


class ByteRate:
    """A rate from a byte counter that may wrap (nvml.h: "Value can be wrapped").

    A difference that the link cannot carry is no traffic but a counter that started anew: it is
    dropped and counted.
    """

    __slots__ = ("_bits", "_time", "_value", "dropped_total")

    def __init__(self) -> None:
        self._value: int | None = None
        self._time = 0.0
        self._bits = 64
        self.dropped_total = 0

    def add(self, value: int, bits: int, time: float, ceiling: float | None) -> float | None:
        """Bytes per second since the last reading; None at the first or where it is dropped.

        `bits` is the width of the counter's type, `ceiling` in bytes per second. Raises
        NarrowCounter where a full link would go round the counter within the interval.
        """
        before, elapsed = self._value, time - self._time
        self._value, self._time = value, time
        self._bits = min(self._bits, bits)
        limit = ceiling * _JITTER if ceiling is not None else None
        if before is None:
            elapsed = _SOONEST
        elif elapsed <= 0:
            return None
        elif value < before < 1 << 32:
            # A counter that falls below 2^32 has begun anew or is narrower than its type. Only
            # the second is a danger, and it is the one to assume: a wider one loses nothing.
            self._bits = 32
        if self._bits < 64 and (limit is None or limit * elapsed >= 1 << self._bits):
            raise NarrowCounter
        if before is None:
            return None
        difference = (value - before) % (1 << self._bits)
        rate = difference / elapsed
        if value < before if limit is None else rate > limit:
            self.dropped_total += 1
            return None
        return rate


class TimeShare:
    """The share of time that a counter of nanoseconds spent counting, 0..1."""

    __slots__ = ("_time", "_value")

    def __init__(self) -> None:
        self._value: int | None = None
        self._time = 0.0

    def add(self, value: int, time: float) -> float | None:
        """The share since the last reading; None at the first and where the counter fell.

        A share above 1 by more than the jitter means that the unit is not nanoseconds: None.
        """
        before, elapsed = self._value, time - self._time
        self._value, self._time = value, time
        if before is None or elapsed <= 0 or value < before:
            return None
        share = (value - before) / 1e9 / elapsed
        return min(share, 1.0) if share <= _JITTER else None
