"""Sources of samples that a test steps."""

from collections.abc import Mapping

from telemetry.event import Event
from telemetry.inventory import Inventory
from telemetry.window import Key, Sample


class Steady:
    """One GPU, the host, any number of disks; a test changes what they give."""

    def __init__(self) -> None:
        self.simulated: str | None = None
        self.gpu: dict[str, float] = {"utilization_ratio": 0.5}
        self.host: dict[str, float] = {"cpu_busy_ratio": 0.25}
        self.disks = 0
        self.happened: list[Event] = []
        self.known = Inventory("", memory_bytes=1)
        self.fault: Exception | None = None
        self.calls: list[str] = []
        self.times: list[int] = []
        self.fresh: dict[str, float] = {}
        self.children_seconds = 0.0

    def sample(self, now: float, time: int) -> Sample:
        if self.fault is not None:
            raise self.fault
        self.times.append(time)
        self.fresh.update({n: now for n, row in (("gpu", self.gpu), ("cpu", self.host)) if row})
        rows: dict[Key, dict[str, float]] = {
            ("gpu", "GPU-1"): dict(self.gpu),
            ("host",): dict(self.host),
            **{("disk", f"d{n}"): {"busy_ratio": 0.5} for n in range(self.disks)},
        }
        return Sample(float(time), {key: row for key, row in rows.items() if row}, {})

    def events(self) -> list[Event]:
        happened, self.happened = self.happened, []
        return happened

    def inventory(self) -> Inventory:
        return self.known

    def gpu_library(self) -> str | None:
        return "12.0"

    def read_at(self) -> Mapping[str, float]:
        return self.fresh

    def cpu_seconds(self) -> float:
        return self.children_seconds

    def errors_total(self) -> int:
        return 3

    def unavailable(self) -> Mapping[str, str]:
        return {}

    def release(self) -> None:
        self.calls.append("release")

    def resume(self) -> None:
        self.calls.append("resume")

    def close(self) -> None:
        self.calls.append("close")
