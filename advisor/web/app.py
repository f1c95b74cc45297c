"""The page as an ASGI application."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from advisor.report.language import LANGUAGES, Language
from advisor.web.guard import REPORT_POLICY, Guard
from advisor.web.live import Live, Snoozes, TooManyWatchers
from advisor.web.picture import Source, SourceError
from advisor.web.texts import texts_for

_LONGEST_COURSE = 14 * 86_400
_REPORT_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_REPORT_KINDS = {".html": "text/html", ".md": "text/plain", ".json": "application/json"}

FindingsOf = Callable[[str], Awaitable[dict[str, Any]]]
"""Language code -> `made` and `findings`, or `trouble`."""


def application(
    source: Source,
    *,
    language: str = "en",
    token: str | None = None,
    loopback: bool = True,
    findings: FindingsOf | None = None,
    reports: Path | None = None,
    snoozes: Snoozes | None = None,
    wall: Callable[[], float] = time.time,
) -> Starlette:
    """The page over a source, to be served by any ASGI server.

    `language` is told where a visitor's browser asks for none of ours; `token` is what visitors
    must give; `loopback` says that only this machine can reach it. `reports` is the folder that
    past reports are read from, `snoozes` tells whose delivery is held back.
    """
    page = _Page(source, language, findings, reports, Live(source, snoozes, wall))
    app = Starlette(
        routes=[
            Route("/", page.index),
            Route("/api/now", page.now),
            Route("/api/live", page.live),
            Route("/api/course", page.course),
            Route("/api/findings", page.findings),
            Route("/api/reports", page.reports),
            Route("/palette.css", page.palette),
            Mount("/reports", routes=[Route("/{name}", page.report)]),
            Mount("/static", StaticFiles(packages=[("advisor.web", "static")])),
        ],
        middleware=[
            Middleware(Guard, token=token, loopback=loopback),
            Middleware(GZipMiddleware, minimum_size=2000, compresslevel=5),
        ],
    )
    app.router.redirect_slashes = False
    return app


class _Page:
    def __init__(
        self,
        source: Source,
        language: str,
        findings: FindingsOf | None,
        reports: Path | None,
        live: Live,
    ) -> None:
        self._source = source
        self._live = live
        self._language = language
        self._languages = {code: Language.load(code) for code in LANGUAGES}
        self._findings = findings
        self._reports = reports
        self._templates = Environment(
            loader=ChoiceLoader(
                [PackageLoader("advisor.web", ""), PackageLoader("advisor.report", "")]
            ),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        palette = resources.files("advisor.report").joinpath("palette.css")
        self._palette = palette.read_text("utf-8")
        self._version = _version()

    async def index(self, request: Request) -> Response:
        asked = _query(request, {"lang"})
        code = asked.get("lang") or self._preferred(request.headers.get("accept-language", ""))
        if code not in self._languages:
            raise HTTPException(400, f"lang is one of {', '.join(self._languages)}")
        language = self._languages[code]
        text = self._templates.get_template("page.html").render(
            t=language.text,
            code=code,
            languages=list(self._languages),
            version=self._version,
            texts={"language": code, **texts_for(language)},
        )
        return HTMLResponse(text, headers={"Vary": "Accept-Language"})

    def _preferred(self, header: str) -> str:
        """The first of our languages that a browser names, in its order."""
        for part in header[:200].split(","):
            code = part.split(";")[0].strip().lower().split("-")[0]
            if code in self._languages:
                return code
        return self._language

    async def palette(self, request: Request) -> Response:
        _query(request, set())
        return Response(self._palette, media_type="text/css")

    async def now(self, request: Request) -> Response:
        _query(request, set())
        return _json(await self._live.now())

    async def live(self, request: Request) -> Response:
        _query(request, set())
        watch = self._live.watch()
        try:
            first = await anext(watch)
        except TooManyWatchers:
            raise HTTPException(503, "too many pages are open", {"Retry-After": "30"}) from None

        async def events() -> AsyncIterator[bytes]:
            try:
                yield _event(first)
                async for document in watch:
                    yield _event(document)
            finally:
                await watch.aclose()  # type: ignore[attr-defined]

        return StreamingResponse(events(), media_type="text/event-stream")

    async def course(self, request: Request) -> Response:
        asked = _query(request, {"host", "since", "until"})
        host = asked.get("host", "")
        until = _whole(asked, "until", int(time.time()) + 1)
        since = _whole(asked, "since", until - 7200)
        if not 0 < until - since <= _LONGEST_COURSE:
            raise HTTPException(400, "since and until span more than nothing, at most 14 days")
        if not host or len(host) > 255:
            raise HTTPException(400, "host names one server")
        try:
            found = await run_in_threadpool(self._source.series, host, since, until)
        except SourceError as error:
            raise HTTPException(503, str(error)) from None
        if found is None:
            raise HTTPException(404, "nothing is known of that server over this time")
        return _json(found)

    async def findings(self, request: Request) -> Response:
        asked = _query(request, {"lang"})
        code = asked.get("lang", self._language)
        if code not in self._languages:
            raise HTTPException(400, f"lang is one of {', '.join(self._languages)}")
        if self._findings is None:
            return _json({})
        return _json(await self._findings(code))

    async def reports(self, request: Request) -> Response:
        _query(request, set())
        return _json({"reports": await run_in_threadpool(self._listed)})

    async def report(self, request: Request) -> Response:
        _query(request, set())
        name = request.path_params["name"]
        if self._reports is None or name not in await run_in_threadpool(self._report_names):
            raise HTTPException(404, "there is no such report")
        path = self._reports / name
        return FileResponse(
            path,
            media_type=_REPORT_KINDS[path.suffix],
            headers={"Content-Security-Policy": REPORT_POLICY},
        )

    def _report_names(self) -> list[str]:
        """Plain files of the folder itself; a link may lead anywhere, and is left out."""
        if self._reports is None or not self._reports.is_dir():
            return []
        found = [
            p
            for p in self._reports.iterdir()
            if p.suffix in _REPORT_KINDS and _REPORT_NAME.fullmatch(p.name)
        ]
        return [p.name for p in found if p.is_file() and not p.is_symlink()]

    def _listed(self) -> list[dict[str, Any]]:
        if self._reports is None:
            return []
        listed = [
            {"name": name, "made": int((self._reports / name).stat().st_mtime)}
            for name in self._report_names()
        ]
        return sorted(listed, key=lambda r: (-int(str(r["made"])), str(r["name"])))[:500]


def _query(request: Request, known: set[str]) -> Mapping[str, str]:
    """The query's values, each once and none that we do not know."""
    pairs = request.query_params.multi_items()
    asked = dict(pairs)
    if len(asked) != len(pairs) or not asked.keys() <= known:
        raise HTTPException(400, f"the query takes {', '.join(sorted(known)) or 'nothing'}")
    return asked


def _whole(asked: Mapping[str, str], name: str, default: int) -> int:
    if name not in asked:
        return default
    try:
        value = float(asked[name])
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e11:
        raise HTTPException(400, f"{name} is a time in seconds since 1970")
    return int(value)


def _json(document: Any) -> Response:
    return Response(_dumps(document), media_type="application/json")


def _event(document: Any) -> bytes:
    return b"data: " + _dumps(document) + b"\n\n"


def _dumps(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        "utf-8", "replace"
    )


def _version() -> str:
    try:
        return metadata.version("talla")
    except metadata.PackageNotFoundError:
        return "?"


__all__: Sequence[str] = ("application",)
