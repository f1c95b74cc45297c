"""The report as Markdown, for chats and tickets."""

from __future__ import annotations

import re
from typing import Any

from advisor.report.html import environment
from advisor.report.language import Language
from advisor.report.report import Report, Server
from advisor.report.section import Sections

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&])")


def text(report: Report, language: Language) -> str:
    """One document: the first screen, then the servers. Sections without a template are left out.

    Whatever a template fills in is escaped, so that no name can become a mark or a link.
    """
    env = environment(language, escape=False)
    env.finalize = _escaped
    env.globals.update(link=_link)
    sections = Sections.find()
    known = set(env.list_templates(extensions=["md"]))
    parts = []

    def add(name: str, title: str, level: int, data: object) -> None:
        template = f"sections/{name}.md"
        if data is not None and template in known:
            body = env.get_template(template).render(data=data).strip()
            parts.append(f"{'#' * level} {_escaped(title)}\n\n{body}")

    head = f"# {_escaped(language.text('GPU right-sizing report'))}"
    if report.told is not None:
        since, until = language.moment(report.told.since), language.moment(report.told.until)
        head += "\n\n" + _escaped(language.text("{since} to {until}", since=since, until=until))
    parts.append(head)
    for section in sections.fleet:
        add(section.name, language.text(section.title), 2, section.build(report))
    for server in report.servers:
        parts.append(f"## {_escaped(server.host)}")
        for part in sections.server:
            add(part.name, language.text(part.title), 3, part.build(server))
    return "\n\n".join(parts) + "\n"


def _link(server: Server) -> str:
    return server.host


def _escaped(value: Any) -> str:
    if value is None:
        return ""
    line = " ".join(str(value).replace("\u00a0", " ").split())
    return _SPECIAL.sub(r"\\\1", line)
