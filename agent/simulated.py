"""A simulated server in the place of this machine."""

from __future__ import annotations

from collections.abc import Mapping

from agent.errors import UserError
from telemetry.event import Event
from telemetry.inventory import Inventory
from telemetry.simulation import Scenario, ScenarioError, Simulation, load_scenario
from telemetry.window import Sample


def read_scenario(name_or_path: str) -> Scenario:
    """A scenario, shipped or from a file. Raises UserError."""
    try:
        return load_scenario(name_or_path)
    except ScenarioError as error:
        raise UserError(str(error)) from None


class SimulatedSource:
    """Samples of a scenario, second by second; nothing of this machine is read."""

    def __init__(self, scenario: Scenario, name: str, start: int) -> None:
        """The scenario's day 0 begins at `start` (Unix time)."""
        self.simulated: str | None = name
        self._scenario = scenario
        self._simulation = Simulation(scenario, start)
        self._read_at: float | None = None

    @property
    def host(self) -> str:
        """The simulated server's name."""
        return self._scenario.server.host

    def sample(self, now: float, time: int) -> Sample:
        self._read_at = now
        return self._simulation.sample(time)

    def events(self) -> list[Event]:
        return []

    def inventory(self) -> Inventory:
        return self._scenario.inventory()

    def gpu_library(self) -> str | None:
        return "simulated"

    def read_at(self) -> Mapping[str, float]:
        return {} if self._read_at is None else {"simulation": self._read_at}

    def cpu_seconds(self) -> float:
        return 0.0

    def errors_total(self) -> int:
        return 0

    def unavailable(self) -> Mapping[str, str]:
        return {}

    def release(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def close(self) -> None:
        pass
