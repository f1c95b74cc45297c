"""Connections that never ask, or ask a byte at a time, do not hold the page's places."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 that hangs up where no whole head came in time.

    uvicorn itself waits for the first request, and for the rest of a head, without end; then as
    many silent connections as it allows keep everybody else out.
    """

    head_seconds: ClassVar[float] = 10.0
    """How long a head may take; a second one at most twice as long."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._waited_after: object | None = None
        self._timer: asyncio.TimerHandle = self.loop.call_later(self.head_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        answered = cycle is None or cycle.response_complete
        if answered and self._waited_after is cycle:
            self.transport.close()
            return
        if answered:
            self._waited_after = cycle
        self._timer = self.loop.call_later(self.head_seconds, self._look)


__all__ = ["ImpatientProtocol"]
