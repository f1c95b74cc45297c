"""GET from a server of this machine: on loopback, within a second, of a bounded size."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from dataclasses import dataclass

SECONDS = 1.0
MOST_BYTES = 4 << 20
_CHUNK = 65536


class FetchFailed(ValueError):
    """No page was got; the text says why."""


@dataclass(frozen=True, slots=True)
class Page:
    """An answer with its status; redirects are not followed."""

    status: int
    text: str


def fetch(address: str, port: int, path: str) -> Page:
    """The page, or FetchFailed. The whole exchange takes at most `SECONDS`."""
    import http.client  # 3 MB with what it brings: only where an engine is asked

    until = time.monotonic() + SECONDS
    connection = http.client.HTTPConnection(address, port, timeout=SECONDS)
    end: threading.Timer | None = None
    try:
        connection.connect()
        # A head that comes letter by letter never runs into the timeout of a single wait.
        end = threading.Timer(max(0.0, until - time.monotonic()), _hang_up, (connection.sock,))
        end.daemon = True
        end.start()
        headers = {"Accept": "text/plain, application/json", "User-Agent": "talla-agent"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        parts: list[bytes] = []
        size = 0
        while chunk := answer.read1(_CHUNK):
            size += len(chunk)
            if size > MOST_BYTES:
                raise FetchFailed(f"its page is larger than {MOST_BYTES >> 20} MiB")
            parts.append(chunk)
        if time.monotonic() >= until:
            raise TimeoutError
        return Page(answer.status, b"".join(parts).decode("utf-8", "replace"))
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, TimeoutError) or time.monotonic() >= until:
            raise FetchFailed(f"it takes longer than {SECONDS:g} s") from None
        raise FetchFailed(getattr(error, "strerror", None) or type(error).__name__) from None
    finally:
        if end is not None:
            end.cancel()
        connection.close()


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


__all__ = ["FetchFailed", "Page", "fetch"]
