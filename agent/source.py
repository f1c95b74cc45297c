"""Where the daemon's samples come from: this machine, or a simulated one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from telemetry.event import Event
from telemetry.inventory import Inventory
from telemetry.window import Sample


class Source(Protocol):
    """Gives a sample each second, and what happens beside it."""

    simulated: str | None
    """The scenario's name where nothing is real, None on a real machine."""

    def sample(self, now: float, time: int) -> Sample:
        """The sample of this second. `now` is monotonic, `time` Unix seconds. Raises nothing."""

    def events(self) -> list[Event]:
        """What happened since the last call; an empty host stands for this one."""

    def inventory(self) -> Inventory:
        """What this server is, as far as it is known now. May take a second."""

    def gpu_library(self) -> str | None:
        """The version of the GPU library, None where there is none."""

    def read_at(self) -> Mapping[str, float]:
        """By collector, the monotonic time of its newest reading; without those that have none."""

    def cpu_seconds(self) -> float:
        """Processor time of the child processes so far."""

    def errors_total(self) -> int:
        """Readings that failed so far and are tried again."""

    def unavailable(self) -> Mapping[str, str]:
        """What cannot be read here, with the reason."""

    def release(self) -> None:
        """Lets go of the GPUs' device files, so that the driver can be replaced."""

    def resume(self) -> None:
        """Takes them back."""

    def close(self) -> None:
        """Ends child processes and lets go of files, within a second."""
