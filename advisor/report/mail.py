"""The report as mail: the first screen as a page that mail programs show, with PNG pictures.

Mail programs know neither SVG nor style sheets: tables, inline styles, and pictures by `cid:NAME`,
where NAME is a PNG file's name without its ending.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.report.html import environment
from advisor.report.language import Language
from advisor.report.payoff import actions
from advisor.report.report import Report, Server
from advisor.report.sections import actions as actions_section
from advisor.report.sections import answer, followed, hours, servers

_BARS = 12
_BANDS = 2


def files(report: Report, language: Language, name: str = "mail") -> dict[str, str | bytes]:
    """`NAME.html` and the pictures that it shows, by file name."""
    pictures: dict[str, bytes] = {}
    shown: list[tuple[str, str]] = []
    for own, alternative, picture in _pictures(report, language):
        key = own if name == "mail" else f"{name}-{own}"
        pictures[f"{key}.png"] = picture
        shown.append((key, alternative))
    env = environment(language)
    env.globals.update(link=lambda _: "")
    page = env.get_template("mail.html").render(
        title=language.text("GPU right-sizing report"),
        told=report.told,
        answer=answer.build(report),
        hours=hours.build(report),
        actions=actions_section.build(report),
        followed=followed.build(report),
        servers=servers.lines(report)[:_BARS],
        more=max(0, len(report.servers) - _BARS),
        pictures=shown,
        version=report.version,
        made=report.made,
    )
    return {f"{name}.html": page, **pictures}


def _pictures(report: Report, language: Language) -> Iterator[tuple[str, str, bytes]]:
    from advisor.report import band_picture, hours_picture

    if sum(report.states.values()) > 0:
        bars = [hours_picture.Bar(s.host, s.states) for s in report.servers if s.states][:_BARS]
        if len(report.servers) > 1:
            bars.insert(0, hours_picture.Bar(language.text("All servers"), report.states))
        drawn = hours_picture.picture(bars, language)
        yield "hours", drawn.alternative, drawn.png()
    # The week of the servers on which there is most to do.
    for server in list({a.server.number: a.server for a in actions(report)}.values())[:_BANDS]:
        seen, told = server.assessment.observations, server.assessment.told
        present = {h.gpu_uuid for h in server.assessment.hours}
        gpus = {
            _index(server, uuid, place): timeline
            for place, (uuid, timeline) in enumerate(seen.gpus.items() if seen else ())
            if uuid in present
        }
        if gpus and told.until > told.since:
            title = f"{server.host}: {language.text('The period, hour by hour')}"
            drawn = band_picture.picture(dict(sorted(gpus.items())), told, title, language)
            yield f"server-{server.number}", drawn.alternative, drawn.png()


def _index(server: Server, uuid: str, place: int) -> int:
    info = server.gpu(uuid)
    return place if info is None or info.index is None else info.index
