"""Levels that differ a little from window to window and card to card, as those of real cards do.

A factor is constant within five minutes and lies in (1 - ratio, 1], so that a limit stays one. It
is given to levels on which no threshold of `telemetry/signals.toml` or of a busy share rests.
"""

from __future__ import annotations

from hashlib import blake2b

from telemetry.metrics import GPU, Statistic
from telemetry.simulation.schedule import STEP

JITTERED = (
    "power_watts",
    "temperature_celsius",
    "memory_utilization_ratio",
    "sm_active_ratio",
    "sm_occupancy_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "pcie_rx_bytes_per_second",
    "pcie_tx_bytes_per_second",
    "nvlink_rx_bytes_per_second",
    "nvlink_tx_bytes_per_second",
)
_SCALED = (Statistic.MEAN, Statistic.MIN, Statistic.MAX, Statistic.LAST)
_FIELDS = tuple(
    (number, field)
    for number, name in enumerate(JITTERED)
    if (metric := GPU.metric(name)) is not None
    for statistic, field in metric.fields()
    if statistic in _SCALED
)


class Jitter:
    """The factors of a scenario, drawn from its seed."""

    def __init__(self, seed: int, ratio: float) -> None:
        self._seed = seed
        self._ratio = ratio

    def sample(self, row: dict[str, float], time: int, uuid: str) -> None:
        """Scales a GPU's row of a sample, in place."""
        factors = self._factors(time, uuid)
        for number, name in enumerate(JITTERED):
            if name in row:
                row[name] *= factors[number]

    def window(self, values: dict[str, float], time: int, uuid: str) -> None:
        """Scales a GPU's row of a five-minute window, in place."""
        factors = self._factors(time, uuid)
        for number, name in _FIELDS:
            if name in values:
                values[name] *= factors[number]

    def _factors(self, time: int, uuid: str) -> list[float]:
        text = f"{self._seed}:{time // STEP}:{uuid}"
        digest = blake2b(text.encode(), digest_size=len(JITTERED)).digest()
        return [1 - self._ratio * byte / 256 for byte in digest]
