"""The GPUs' own readings, as the NVML client gives them."""

from __future__ import annotations

from agent.collectors.collector import Sources
from agent.nvml.types import GpuReading
from telemetry.window import Key, Sample

NO_CLIENT = "GPUs are switched off in the configuration"


def gpu_key(reading: GpuReading) -> Key:
    """The row's key: by UUID, by index only for a GPU that has never told its UUID."""
    return ("gpu", reading.uuid or f"index:{reading.index}")


class GpuCollector:
    """A row for each GPU; one that answers an error keeps its texts and has no values."""

    name = "gpu"
    every = 1.0
    read_at: float | None = None

    def __init__(self, sources: Sources) -> None:
        self._nvml = sources.nvml
        self._patience = sources.gpu_patience
        self._begun = False
        self._texts: dict[Key, tuple[GpuReading, dict[str, str]]] = {}
        """Each GPU's last reading with the texts of its row, most often those of the next too."""
        self._missing: str | None = None
        self.readings: tuple[GpuReading, ...] = ()
        """The GPUs at the last tick, by index, those with an error included."""

    @property
    def errors_total(self) -> int:
        return self._nvml.errors_total() if self._nvml is not None else 0

    def begin(self) -> None:
        """Asks the driver, so that the host can be read while it answers."""
        if self._nvml is not None:
            self._nvml.begin_tick()
            self._begun = True

    def collect(self, now: float, sample: Sample) -> None:
        if self._nvml is None:
            return
        if not self._begun:
            self.begin()
        self._begun = False
        tick = self._nvml.end_tick(self._patience)
        self._missing = tick.missing
        if tick.waiting:
            return  # slow, not absent: this second has no reading of any GPU
        self.readings = tick.gpus
        if len(self._texts) > 2 * len(tick.gpus):  # MIG instances come and go
            self._texts.clear()
        for reading in tick.gpus:
            key = gpu_key(reading)
            if reading.values:
                self.read_at = now
                sample.rows[key] = dict(reading.values)
            sample.texts[key] = self._texts_of(key, reading)

    def unavailable(self) -> dict[str, str]:
        if self._nvml is None:
            return {"gpu": NO_CLIENT}
        if self._missing is not None:
            return {"gpu": self._missing}
        reasons: dict[str, str] = {}
        for reading in self.readings:
            name = " ".join(gpu_key(reading))
            if reading.error is not None:
                reasons[name] = reading.error
            for metric, reason in reading.unavailable.items():
                reasons[f"{name} {metric}"] = reason
        return reasons

    def _texts_of(self, key: Key, reading: GpuReading) -> dict[str, str]:
        last, texts = self._texts.get(key, (None, {}))
        if (
            last is not None
            and reading.texts is last.texts
            and reading.name == last.name
            and reading.error == last.error
        ):
            return texts
        texts = dict(reading.texts)
        if reading.name is not None:
            texts["gpu_model"] = reading.name
        if reading.error is not None:
            texts["error"] = reading.error
        self._texts[key] = reading, texts
        return texts
