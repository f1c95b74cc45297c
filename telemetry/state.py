"""The states of a GPU in a window, and what held it back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

STATE_TEXTS = frozenset({("gpu", "state"), ("gpu", "cause")})
"""Measurement and name of texts that tell a state to dashboards; whoever decides judges anew."""


class State(StrEnum):
    """What a GPU did in a window."""

    BUSY = "busy"
    IDLE_FREE = "idle_free"
    IDLE_HELD = "idle_held"
    ORPHAN_HELD = "orphan_held"
    STUCK = "stuck"
    STARVED = "starved"
    UNKNOWN = "unknown"


class Cause(StrEnum):
    """What held a GPU back."""

    LOCAL_STORAGE = "local_storage"
    CPU_DATALOADER = "cpu_dataloader"
    NETWORK_STORAGE = "network_storage"
    FUSE_OR_OBJECT_STORAGE = "fuse_or_object_storage"
    HOST_MEMORY = "host_memory"
    PCIE = "pcie"
    CHECKPOINTING = "checkpointing"
    COMMUNICATION = "communication"
    THROTTLED = "throttled"
    UNKNOWN = "unknown"


class Note(StrEnum):
    """Why memory that is held idly is not forgotten."""

    LOADING = "loading"
    STANDBY = "standby"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job waits: a disk, mount or nic by its name, what it carried, and the most that it
    can, each where known."""

    measurement: str
    name: str
    fstype: str | None = None
    bytes_per_second: float | None = None
    ceiling_bytes_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class WindowState:
    """The one state of one GPU in one window.

    `lost_ratio` is the share of the window lost to `cause`; a cause can stand beside `busy`
    (throttled, pcie, communication, or unknown where gaps were seen that nothing explains), with
    the `place` that it points to. `evidence` are short lines that name field, value and
    threshold; `unused` names what would have helped and was not there.
    """

    state: State
    confidence: float
    cause: Cause | None = None
    lost_ratio: float | None = None
    evidence: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    note: Note | None = None
    place: Place | None = None
