"""The chains of host signals: two of different chains must agree before a cause is named."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chain:
    """A group of signals that share one origin and so count as one witness."""

    name: str
    help: str
    of_job: bool = False
    """Told of a GPU's own job, and not of the host as a whole."""


CHAINS = (
    Chain("io_pressure", "tasks wait for I/O (pressure io, iowait)"),
    Chain("device", "a block device is slow, queued or busy"),
    Chain("mount", "a network or FUSE mount answers slowly or is sent again"),
    Chain("nic", "a network link is nearly full"),
    Chain("job_io", "the job's own tasks wait for I/O", of_job=True),
    Chain("cpu", "the host's processors are full or the job's workers are"),
    Chain("memory", "the host is short of memory (pressure, swap, faults)"),
    Chain("write", "the job writes a lot, as a checkpoint does", of_job=True),
)
