"""When the next NVML child may be started: at once, or with growing patience."""

from __future__ import annotations

import time

from agent.nvml.process import ChildFailed

FIRST_WAIT, LAST_WAIT = 1.0, 60.0
"""Seconds before the driver is looked for again, doubled each time."""
SETTLED_TICKS = 3
"""Ticks that a child has answered when it counts as sound."""
FREE_RESTARTS, FREE_KILLS = 3, 60
"""Children in a row that may die before they were sound, and be replaced at once: by their own
fault, and by a kill from outside.

Starting one costs about a tenth of a second of a processor: a library that crashes after each first
tick would otherwise cost more than all sampling.
"""


class Restarts:
    """The children's births and deaths. A new one of these forgives everything."""

    def __init__(self) -> None:
        self._wait = FIRST_WAIT
        self._at = 0.0
        self._ticks = 0
        self._short_lived = 0
        self._killed = 0

    def due(self) -> bool:
        """Whether a child may be started now."""
        return time.monotonic() >= self._at

    def born(self) -> None:
        """A child was started."""
        self._ticks = 0

    def answered(self) -> None:
        """It answered a tick."""
        self._ticks += 1
        if self._ticks == SETTLED_TICKS:
            self._short_lived = self._killed = 0
            self._wait = FIRST_WAIT

    def died(self, failed: ChildFailed) -> None:
        """It hung or crashed, and no GPU is left out for it; so the next one may meet the same.

        A child that died before its first tick is not replaced at once, unless it crashed in a
        call of one GPU: a second crash in the same place tells that this GPU is to blame.
        """
        if self._ticks < SETTLED_TICKS:
            self._short_lived += not failed.from_outside
            self._killed += failed.from_outside
        suspected = failed.crashed_in_driver and failed.index is not None
        early = self._ticks == 0 and not suspected
        if self._short_lived > FREE_RESTARTS or self._killed > FREE_KILLS or early:
            self.later()

    def later(self) -> None:
        """Wait; twice as long the next time."""
        self._at = time.monotonic() + self._wait
        self._wait = min(self._wait * 2, LAST_WAIT)


class Blame:
    """Whether a GPU is to blame for the end of a child: at once if a call of it hung, at the second
    time if it crashed, since once is chance."""

    def __init__(self) -> None:
        self._crashes: set[tuple[int, str]] = set()

    def falls_on_gpu(self, failed: ChildFailed) -> bool:
        """Whether the GPU of `failed` must be left out from now on."""
        if failed.index is None or not failed.crashed_in_driver:
            return failed.index is not None and failed.hung
        crash = (failed.index, failed.function)
        again = crash in self._crashes
        self._crashes.symmetric_difference_update({crash})
        return again
