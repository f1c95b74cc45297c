"""Something that fails is tried again ever more slowly, and told once."""

from __future__ import annotations

_TOLD_AGAIN_SECONDS = 3600.0


class Attempts:
    """Of one task: when it may be tried again, and whether a failure is news."""

    def __init__(self, first_wait: float, last_wait: float) -> None:
        """The waits in seconds; each is twice the one before, to the last."""
        self._first, self._last = first_wait, last_wait
        self._failures = 0
        self._next_try = 0.0
        self._told_at = 0.0
        self.reason: str | None = None
        """Why it failed the last time; None since it worked."""

    def waits(self, now: float) -> bool:
        """Whether it is too early; a clock that was set back makes nothing wait longer."""
        return now < self._next_try <= now + self._last

    def failed(self, reason: str, now: float) -> bool:
        """Whether that is to be told: at the first failure, and hourly at most where it changes."""
        self._next_try = now + min(self._last, self._first * 2 ** min(self._failures, 10))
        self._failures += 1
        changed = reason != self.reason and not 0 <= now - self._told_at < _TOLD_AGAIN_SECONDS
        news = self.reason is None or changed
        if news:
            self._told_at = now
        self.reason = reason
        return news

    def worked(self) -> bool:
        """Whether that is to be told: it had failed before."""
        failed = self.reason is not None
        self._failures, self._next_try, self.reason = 0, 0.0, None
        return failed


__all__ = ["Attempts"]
