"""GET from a server of this machine: on loopback, within a second, of a bounded size."""

from __future__ import annotations

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
    try:
        connection.connect()
        headers = {"Accept": "text/plain, application/json", "User-Agent": "talla-agent"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        parts: list[bytes] = []
        size = 0
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise FetchFailed(f"it takes longer than {SECONDS:g} s")
            if connection.sock is not None:
                connection.sock.settimeout(left)
            chunk = answer.read1(_CHUNK)
            if not chunk:
                return Page(answer.status, b"".join(parts).decode("utf-8", "replace"))
            size += len(chunk)
            if size > MOST_BYTES:
                raise FetchFailed(f"its page is larger than {MOST_BYTES >> 20} MiB")
            parts.append(chunk)
    except TimeoutError:
        raise FetchFailed(f"it takes longer than {SECONDS:g} s") from None
    except (OSError, http.client.HTTPException) as error:
        raise FetchFailed(getattr(error, "strerror", None) or type(error).__name__) from None
    finally:
        connection.close()


__all__ = ["FetchFailed", "Page", "fetch"]
