"""A metric's reading, isolated from every other reading.

A probe holds the names of the declared metrics that it gives and, in order of preference, the
sources that can give them. What a source's failure means decides what happens to the probe:

* permanent (the card, the driver or our rights lack it): the next source takes over, and after
  the last one the metrics are unavailable, with the reason, and are not asked for again;
* transient: the metrics are absent this time, the failure is counted, the source is asked again;
  so is a permanent one of a source that has answered before, until it has lasted for a while;
* lost: nothing of the device answers; the caller is told by the exception itself.

This module is imported by the NVML child too and so stays free of anything large.
"""

from __future__ import annotations

from enum import Enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Source = Callable[[dict[str, float]], None]
    """Puts what it read under the metrics' names; what is absent it leaves out."""


class Trouble(Enum):
    """What a failed reading means for the readings to come."""

    PERMANENT = "permanent"
    TRANSIENT = "transient"
    LOST = "lost"


class ReadingFailed(Exception):
    """A source could not give its metrics; `reason` is a phrase for people."""

    def __init__(self, trouble: Trouble, reason: str) -> None:
        super().__init__(reason)
        self.trouble = trouble
        self.reason = reason


class SourceGone(Exception):
    """Nothing can be read of any subject any more: it passes through the probes."""


def classify(error: Exception) -> ReadingFailed:
    """What an exception of a source means, where the source does not say it itself.

    A file that is not there, or that may not be read, stays so; anything else may pass.
    """
    if isinstance(error, ReadingFailed):
        return error
    if isinstance(error, FileNotFoundError):
        return ReadingFailed(Trouble.PERMANENT, f"{error.filename} does not exist")
    if isinstance(error, PermissionError):
        return ReadingFailed(Trouble.PERMANENT, f"no permission to read {error.filename}")
    if isinstance(error, NotImplementedError):
        return ReadingFailed(Trouble.PERMANENT, str(error) or "not supported here")
    if isinstance(error, OSError):
        return ReadingFailed(Trouble.TRANSIENT, error.strerror or type(error).__name__)
    return ReadingFailed(Trouble.TRANSIENT, f"{type(error).__name__}: {error}")


PATIENCE = 60
"""Failures in a row after which a source that used to answer is believed to be gone for good."""


class Probe:
    """The reading of some metrics of one subject."""

    __slots__ = (
        "_answered",
        "_at",
        "_in_a_row",
        "_sources",
        "error",
        "errors_total",
        "metrics",
        "steady",
        "unavailable",
    )

    def __init__(self, metrics: tuple[str, ...], *sources: Source) -> None:
        if not metrics or not sources:
            raise ValueError("a probe needs a metric and a source")
        self.metrics = metrics
        self._sources = sources
        self._at = 0
        self._answered = False
        self._in_a_row = 0
        self.unavailable: str | None = None
        """Why the metrics will not be asked for again."""
        self.error: str | None = None
        """Why the last reading failed, if it did and may succeed next time."""
        self.errors_total = 0
        self.steady: Source | None = None
        """The source, if it answered the last time."""

    @property
    def source(self) -> Source | None:
        """The source in use, None once the last one has failed for good."""
        return None if self.unavailable is not None else self._sources[self._at]

    def read(self, values: dict[str, float]) -> bool:
        """Add what can be read to `values`; whether it went as the time before.

        Raises ReadingFailed for a lost device only, and SourceGone.
        """
        while self.unavailable is None:
            source = self._sources[self._at]
            try:
                source(values)
            except SourceGone:
                raise
            except Exception as error:  # noqa: BLE001 - one reading never stops another
                if not self.failed(error):
                    return False
            else:
                if self._answered and not self._in_a_row:
                    return True
                self._answered, self._in_a_row, self.error = True, 0, None
                self.steady = source
                return False
        return False

    def failed(self, error: Exception) -> bool:
        """Notes that the source in use failed; whether another is to be asked at once.

        Raises ReadingFailed for a lost device.
        """
        self.steady = None
        failure = classify(error)
        if failure.trouble is Trouble.LOST:
            raise failure from error
        self._in_a_row += 1
        patient = self._answered and self._in_a_row < PATIENCE
        if failure.trouble is Trouble.TRANSIENT or patient:
            self.errors_total += 1
            self.error = failure.reason
            return False
        self._answered, self._in_a_row, self.error = False, 0, None
        if self._at + 1 == len(self._sources):
            self.unavailable = failure.reason
            return False
        self._at += 1
        return True


class ProbeSet:
    """The probes of one subject, read together."""

    __slots__ = ("_live", "changes", "probes")

    def __init__(self, probes: Iterable[Probe]) -> None:
        self.probes = tuple(probes)
        self._live = list(self.probes)
        self.changes = 0
        """Grows when what is unavailable, or the number of errors, may have changed."""

    def read(self) -> dict[str, float]:
        """The metrics that can be read now. Raises as `Probe.read` does."""
        values: dict[str, float] = {}
        steady = True
        for probe in self._live:
            source = probe.steady
            if source is None:
                steady &= probe.read(values)
                continue
            try:  # the usual case, made short
                source(values)
            except SourceGone:
                raise
            except Exception as error:  # noqa: BLE001 - as in Probe.read
                steady = False
                if probe.failed(error):
                    probe.read(values)
        if not steady:
            self.changes += 1
            self._live = [probe for probe in self._live if not probe.unavailable]
        return values

    def unavailable(self) -> dict[str, str]:
        """The metrics that are absent, with the reason: for good, or this time."""
        return {
            metric: reason
            for probe in self.probes
            if (reason := probe.unavailable or probe.error) is not None
            for metric in probe.metrics
        }

    @property
    def errors_total(self) -> int:
        """Transient failures so far."""
        return sum(probe.errors_total for probe in self.probes)
