"""Calls that may never return, kept out of the tick.

A dead NFS server blocks statvfs(2), a dead directory server blocks getpwuid(3). Such a call runs in
a thread that nobody waits for; what it found is there on a later tick.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

BLOCKED = "does not answer (the call has not returned)"


class Background(Generic[K, V]):
    """Answers of `call` by its argument, fetched by one short-lived thread at a time.

    An argument whose call has not returned after `deadline` seconds is given up: it is named in
    `reasons`, and not asked again until that call returns. So there are at most `limit` blocked
    threads, after which nothing more is asked.
    """

    def __init__(self, call: Callable[[K], V], *, deadline: float = 2.0, limit: int = 8) -> None:
        self._call = call
        self._deadline = deadline
        self._limit = limit
        self._lock = threading.Lock()
        self._queue: list[K] = []
        self._running: K | None = None
        self._since: float | None = None
        self._thread: threading.Thread | None = None
        self._blocked: set[K] = set()
        self.answers: dict[K, V] = {}
        self.reasons: dict[K, str] = {}

    def ask(self, arguments: Iterable[K], now: float) -> None:
        """Has the call made for each argument; returns at once."""
        with self._lock:
            waiting = {*self._queue, *self._blocked, self._running}
            self._queue.extend(a for a in arguments if a not in waiting)
        self.tend(now)

    def tend(self, now: float) -> None:
        """Gives up a call past its deadline and goes on with the others. Costs next to nothing."""
        if self._thread is None and not self._queue:
            return
        with self._lock:
            running = self._running
            if self._thread is not None and running is not None:
                if self._since is None:
                    self._since = now
                elif now - self._since > self._deadline:
                    self._blocked.add(running)
                    self.answers.pop(running, None)
                    self.reasons[running] = BLOCKED
                    self._thread, self._running = None, None
            if self._thread is None and self._queue and len(self._blocked) < self._limit:
                # A daemon thread: one that is blocked for good does not keep the process.
                thread = threading.Thread(target=self._work, daemon=True, name="talla-background")
                self._thread = thread
                self._since = None
                thread.start()

    def forget(self, keep: Iterable[K]) -> None:
        """Drops what is known of all other arguments."""
        kept = set(keep)
        with self._lock:
            self.answers = {key: v for key, v in self.answers.items() if key in kept}
            self.reasons = {key: v for key, v in self.reasons.items() if key in kept}

    def wait(self, seconds: float) -> None:
        """Waits until all is answered, at most so long: for commands, never for the daemon."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _work(self) -> None:
        me = threading.current_thread()
        while True:
            with self._lock:
                if self._thread is not me:
                    return
                if not self._queue:
                    self._thread, self._running = None, None
                    return
                argument = self._queue.pop(0)
                self._running = argument
                self._since = None
            answer: V | None = None
            reason: str | None = None
            try:
                answer = self._call(argument)
            except (OSError, KeyError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            with self._lock:
                self._blocked.discard(argument)
                if answer is not None:
                    self.answers[argument] = answer
                    self.reasons.pop(argument, None)
                else:
                    self.answers.pop(argument, None)
                    self.reasons[argument] = reason or "no answer"
