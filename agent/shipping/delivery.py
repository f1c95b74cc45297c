"""What became of lines that were sent to a server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Accepted:
    """The server has them."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """At least one of them is bad, in the server's words; the server may have kept the others.

    `lines` are the bad ones, where it is certain which, and that the server kept the others.
    """

    reason: str
    lines: tuple[bytes, ...] | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """They are too many at once."""

    reason: str = "the server takes no request of this size"


@dataclass(frozen=True, slots=True)
class Retry:
    """Not now: the server is away, slow, or asks for patience (`after`, in seconds)."""

    reason: str
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Unauthorised:
    """Not before a person mends a token, a bucket or a certificate; the reason says which."""

    reason: str


Delivery = Accepted | Rejected | Split | Retry | Unauthorised
