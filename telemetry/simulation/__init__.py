"""The simulated server: one scenario format for demos, tests, and the fake NVML library."""

from __future__ import annotations

from telemetry.simulation.fake_library import fake_library
from telemetry.simulation.history import Simulation, history, samples
from telemetry.simulation.reader import ScenarioError
from telemetry.simulation.scenario import (
    Scenario,
    load_scenario,
    read_scenario,
    shipped_scenarios,
)

__all__ = [
    "Scenario",
    "ScenarioError",
    "Simulation",
    "fake_library",
    "history",
    "load_scenario",
    "read_scenario",
    "samples",
    "shipped_scenarios",
]
