"""Who may ask what: the page is read by its own visitors, from its own origin, and by GET alone."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import re
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_MOST_BYTES = 2048
"""Of path and query together."""

_PATH = re.compile(rb"/(?:[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?")
"""Paths are plain ASCII; names from machines travel in the query."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; sandbox allow-popups"
)
"""A report carries its style in itself and runs nothing."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "talla",
}


class Guard:
    """Answers what is not for the page itself, before anything is read."""

    def __init__(self, app: ASGIApp, *, token: str | None, loopback: bool) -> None:
        """With `loopback`, only names of this machine are believed in Host (DNS rebinding)."""
        self._app = app
        self._token = token
        self._loopback = loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope, Headers(scope=scope))
        await (refusal or self._app)(scope, receive, answer)

    def _refusal(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        path: bytes = scope.get("raw_path") or b""
        path = path.partition(b"?")[0]
        if not self._may(headers):
            return PlainTextResponse(
                "", 401, {"WWW-Authenticate": 'Basic realm="Talla", charset="UTF-8"'}
            )
        if len(path) + len(scope["query_string"]) > _MOST_BYTES:
            return PlainTextResponse("the address is too long\n", 414)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("this page only reads\n", 405, {"Allow": "GET, HEAD"})
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return PlainTextResponse("a body is not expected\n", 400)
        if not _PATH.fullmatch(path):
            return PlainTextResponse("there is no such page\n", 404)
        if self._loopback and not _names_loopback(headers.get("host", "")):
            return PlainTextResponse("this page answers to names of this machine alone\n", 403)
        if not _own_site(path, headers):
            return PlainTextResponse("another site asked for this\n", 403)
        return None

    def _may(self, headers: Headers) -> bool:
        if self._token is None:
            return True
        given = _given_token(headers)
        return given is not None and hmac.compare_digest(given.encode(), self._token.encode())


def _given_token(headers: Mapping[str, str]) -> str | None:
    """The token of `Bearer TOKEN`, or the password of `Basic`."""
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(rest.strip(), validate=True).decode()
        except (binascii.Error, ValueError):
            return None
        return pair.partition(":")[2]
    return None


def _names_loopback(host: str) -> bool:
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _own_site(path: bytes, headers: Mapping[str, str]) -> bool:
    """Whether the page itself asks, a person typed it, or a link from elsewhere opens the page.

    https://www.w3.org/TR/fetch-metadata/; the page at `/` holds no data, and no other site can
    frame it.
    """
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != headers.get("host"):
        return False
    site = headers.get("sec-fetch-site", "none")
    if site in ("none", "same-origin"):
        return True
    opens = headers.get("sec-fetch-mode") == "navigate"
    return path == b"/" and opens and headers.get("sec-fetch-dest") == "document"
