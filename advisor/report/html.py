"""The report as HTML: pages that need nothing from outside, one file for a few servers."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from advisor.message import say
from advisor.report.charts import Charts
from advisor.report.language import Language
from advisor.report.report import Report, Server
from advisor.report.section import Sections

FIRST_SCREEN_BELOW = 100
_ONE_FILE = 12
"""Up to this many servers are told in one file, which is easier to send on."""

_TITLE = say("GPU right-sizing report")
_SERVER_TITLE = "{host}: GPU right-sizing report"


def pages(report: Report, language: Language, name: str = "report") -> dict[str, str]:
    """The files by name: `NAME.html`, and a page for each server where they are many.

    Whatever came from a machine is escaped. Raises nothing for missing parts: a section that has
    nothing to show is left out.
    """
    index = f"{name}.html"
    if len(report.servers) <= _ONE_FILE:
        book = _Book(report, language, lambda server: f"#{server.anchor}", "")
        return {index: book.fleet(report.servers)}
    book = _Book(report, language, lambda server: _file(server, name), index)
    files = {index: book.fleet(())}
    for server in report.servers:
        files[_file(server, name)] = book.server(server)
    return files


def environment(language: Language, *, escape: bool = True) -> Environment:
    """Templates in a language, with `t`, `plural` and `lang`."""
    env = Environment(
        loader=PackageLoader("advisor.report", ""),
        autoescape=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(t=language.text, plural=language.plural, lang=language)
    return env


class _Book:
    """Renders the pages of one report in one language."""

    def __init__(
        self, report: Report, language: Language, link: Callable[[Server], str], index: str
    ) -> None:
        self._report = report
        self._language = language
        self._sections = Sections.find()
        self._env = environment(language)
        charts = Charts(language)
        folder = resources.files("advisor.report")
        style = "".join(
            folder.joinpath(name).read_text("utf-8") for name in ("palette.css", "style.css")
        )
        self._env.globals.update(
            link=link,
            index=index,
            demand_chart=charts.demand,
            starvation_chart=charts.starvation,
            style=Markup(style),  # ours, and no place for text from elsewhere
            version=report.version,
            made=report.made,
        )

    def fleet(self, whole: tuple[Server, ...]) -> str:
        """The page of the fleet, with the servers in `whole` on it."""
        bodies = [
            (section, self._body(section.name, data))
            for section in self._sections.fleet
            if (data := section.build(self._report)) is not None
        ]
        return self._env.get_template("fleet.html").render(
            title=self._language.text(_TITLE),
            told=self._report.told,
            first=[pair for pair in bodies if pair[0].place < FIRST_SCREEN_BELOW],
            last=[pair for pair in bodies if pair[0].place >= FIRST_SCREEN_BELOW],
            servers=[(server, self._parts(server)) for server in whole],
        )

    def server(self, server: Server) -> str:
        """The page of one server."""
        return self._env.get_template("server.html").render(
            title=self._language.text(_SERVER_TITLE, host=server.host),
            told=server.assessment.told,
            server=server,
            sections=self._parts(server),
        )

    def _parts(self, server: Server) -> list[tuple[object, Markup]]:
        return [
            (section, self._body(section.name, data))
            for section in self._sections.server
            if (data := section.build(server)) is not None
        ]

    def _body(self, name: str, data: object) -> Markup:
        # Escaped while it was rendered.
        return Markup(self._env.get_template(f"sections/{name}.html").render(data=data))


def _file(server: Server, name: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9]+", "-", server.host).strip("-")[:60]
    return f"{name}-server-{server.number:03}{f'-{safe}' if safe else ''}.html"
