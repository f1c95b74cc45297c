"""A way to hand lines to a server over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

MOST_BYTES = 1 << 20
"""Of an answer to a write: a few words in practice."""


class NotReady(Exception):
    """A file that is needed cannot be used; the message says which."""


class Refused(Exception):
    """The server answered with another status than success; 0 where TLS was not agreed on."""

    def __init__(self, status: int, body: str, headers: Mapping[str, str]) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.body = body
        self.headers = headers


class WritePath(Protocol):
    """Holds connections to one server."""

    def write(self, bucket: str, packed: bytes) -> None:
        """Posts lines, packed by gzip. Raises Refused, urllib3's HTTPError or OSError."""

    def close(self) -> None:
        """Lets go of them."""


__all__ = ["MOST_BYTES", "NotReady", "Refused", "WritePath"]
