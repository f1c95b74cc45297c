"""This machine, opened for a command that looks once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agent.config.load import load
from agent.config.settings import Settings
from agent.inventory import host_name
from agent.machine import MachineSource
from telemetry import logs


@dataclass(frozen=True, slots=True)
class Machine:
    """The configuration that holds, this server's name, and what reads it."""

    settings: Settings
    host: str
    source: MachineSource


@contextmanager
def opened(config: str | None) -> Iterator[Machine]:
    """The machine as the configuration names it; its NVML process ends with the block."""
    settings = load(config)
    logs.start("error")  # the command itself tells what is missing
    source = MachineSource(settings, settings.agent.host or "", patience=None)
    host = settings.agent.host or host_name(source.hostfs)
    try:
        yield Machine(settings, host, source)
    finally:
        source.close()
