"""An HTTP answer that is bounded in size and in time, whoever sends it."""

from __future__ import annotations

import io
import time
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

_CHUNK = 65536
_WAITS = 10
"""The whole answer may take so many times as long as one wait for a part of it."""


class Bounded(urllib3.PoolManager):
    """Connections whose answers are whole and bounded, for a client that reads all there is.

    `seconds` bound each wait, ten times as many a whole body. Redirects are not followed: they
    would carry a token elsewhere. An answer is not unpacked, since none is asked for packed.
    Requests raise urllib3's HTTPError, `Endless` among them.
    """

    def __init__(self, seconds: float, most_bytes: int, **given: Any) -> None:
        super().__init__(**given)
        self._seconds = seconds
        self._most_bytes = most_bytes

    def urlopen(  # type: ignore[override]
        self, method: str, url: str, redirect: bool = False, **given: Any
    ) -> urllib3.BaseHTTPResponse:
        """See urllib3; what is asked of time, redirects and reading is overruled."""
        del redirect
        given |= {"preload_content": False, "decode_content": False}
        given |= {"timeout": self._seconds, "retries": False}
        until = time.monotonic() + _WAITS * self._seconds
        answer = super().urlopen(method, url, redirect=False, **given)
        body = _body(answer, until, self._seconds, self._most_bytes)
        return urllib3.HTTPResponse(
            io.BytesIO(body),
            answer.headers,
            answer.status,
            reason=answer.reason,
            decode_content=False,
        )


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
    return answer.status, _body(answer, until, seconds, most_bytes)


def _body(answer: urllib3.BaseHTTPResponse, until: float, seconds: float, most_bytes: int) -> bytes:
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
    return b"".join(parts)


__all__ = ["Bounded", "Endless", "ask"]
