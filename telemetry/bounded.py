"""An HTTP answer that is bounded in size and in time, whoever sends it."""

from __future__ import annotations

import time
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

_CHUNK = 65536
_WAITS = 10
"""The whole answer may take so many times as long as one wait for a part of it."""


class Endless(HTTPError):
    """The answer is larger, or comes more slowly, than any that was asked for."""


def ask(
    pool: urllib3.PoolManager,
    method: str,
    url: str,
    *,
    seconds: float,
    most_bytes: int,
    **given: Any,
) -> tuple[int, bytes]:
    """Status and body. `seconds` bound each wait, ten times as many the whole body.

    Redirects are not followed: they would carry a token elsewhere. An answer is not unpacked, since
    none is asked for packed. Raises urllib3's HTTPError, `Endless` among them.
    """
    until = time.monotonic() + _WAITS * seconds
    answer = pool.request(
        method,
        url,
        timeout=seconds,
        retries=False,
        redirect=False,
        preload_content=False,
        decode_content=False,
        **given,
    )
    try:
        parts: list[bytes] = []
        size = 0
        while part := answer.read1(_CHUNK):
            parts.append(part)
            size += len(part)
            if size > most_bytes:
                raise Endless(f"its answer is larger than {most_bytes >> 20} MiB")
            if time.monotonic() > until:
                raise Endless(f"its answer takes longer than {_WAITS * seconds:g} s")
    except BaseException:
        answer.close()  # what is left of it would be read as the next answer
        raise
    answer.release_conn()
    return answer.status, b"".join(parts)


__all__ = ["Endless", "ask"]
