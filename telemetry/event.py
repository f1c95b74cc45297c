"""Events: alert transitions, XID errors, lost GPUs, restarts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How soon a person should look."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at one instant on one host.

    `kind` names it (`alert`, `xid`, `gpu_lost`, `gpu_returned`, `gpu_library`, `agent_start`,
    `clock_step`, ...); `rule` and `raised` are set for alert transitions. `sequence` counts the
    host's events and is given by the store.
    """

    time: float
    host: str
    kind: str
    text: str
    severity: Severity = Severity.INFO
    gpu_uuid: str | None = None
    rule: str | None = None
    raised: bool | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    sequence: int | None = None
