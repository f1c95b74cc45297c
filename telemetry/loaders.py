"""Whether a job's loaders ever rest. Those that keep up find their queue full, and do."""

from __future__ import annotations

from collections.abc import Sequence

from telemetry.thresholds import Thresholds
from telemetry.window import Frame

Column = Sequence[float | None]


class Loaders:
    """The loaders of one GPU's job, window by window, by the looks that were taken at its tasks."""

    def __init__(self, gpu: Frame, processor_share: Column | None, thresholds: Thresholds) -> None:
        """`processor_share` is the share of the host's threads that the job keeps busy."""
        nothing: Column = [None] * len(gpu)
        self._t = thresholds
        self._waiting = gpu.columns.get("signal_job_io_ratio", nothing)
        self._computing = gpu.columns.get("job_computing_ratio_busy_ratio", nothing)
        self._share = processor_share or nothing
        self.looked_at = frozenset(
            i
            for column in (self._waiting, self._computing, self._share)
            for i, value in enumerate(column)
            if value is not None
        )
        """Windows in which it is known what they do."""

    def wait(self, i: int) -> bool:
        """Never rest, and wait for I/O for the most part."""
        waiting = self._waiting[i]
        if waiting is None or waiting < self._t.waiting_ratio:
            return False
        # One look does not see both: a quarter of the tasks in state D, three quarters in R.
        return waiting + (self._computing[i] or 0.0) >= self._t.steady_ratio

    def compute(self, i: int) -> bool:
        """Never rest from computing; judged by what the job uses where they were not looked at."""
        computing = self._computing[i]
        return self.fill(i) if computing is None else computing >= self._t.steady_ratio

    def fill(self, i: int) -> bool:
        """Keep the host's processors busy, with the rest of the job."""
        share = self._share[i]
        return share is not None and share >= self._t.job_processor_share

    def windows(self) -> frozenset[int]:
        """Those in which they never rest."""
        return frozenset(i for i in self.looked_at if self.wait(i) or self.compute(i))

    def told(self, i: int) -> str:
        """What they do, for people."""
        waiting, computing = self._waiting[i], self._computing[i]
        does = [
            f"{what} in {100 * share:.0f} %"
            for what, share in (("wait for I/O", waiting), ("compute", computing))
            if share is not None
        ]
        if not does:
            return "the job keeps the processors busy itself"
        return f"the job's workers {' and '.join(does)} of the looks at them"

    def hint(self, i: int) -> str | None:
        """What points to a cause where it is one witness alone: a line for people."""
        computing = self._computing[i]
        if computing is None or computing < self._t.steady_ratio:
            return None
        return (
            f"{self.told(i)}, and the host's processors are not known to be full:"
            " more workers may help"
        )
