"""Alert rows as messages for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, tzinfo
from html import escape

from advisor.channels.message import Message
from advisor.state import AlertRow
from telemetry.event import Event, Severity

_ORDER = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)
_COLOURS = {Severity.CRITICAL: "#b3261e", Severity.WARNING: "#8a5300", Severity.INFO: "#1f5f99"}
_STYLE = "font:14px/1.45 system-ui,sans-serif;color:#1a1a1a;background:#ffffff"


def message_of(rows: Sequence[AlertRow]) -> Message:
    """One message about several transitions, in their order."""
    events = [row.event for row in rows]
    raised = [event for event in events if event.raised]
    severity = min((e.severity for e in raised), key=_ORDER.index, default=Severity.INFO)
    return Message(
        title=_title(events, raised),
        text="\n\n".join(_text(event) for event in events) + "\n",
        html=_page("".join(_block(event) for event in events)),
        severity=severity,
        alerts=tuple(events),
    )


def digest_of(rows: Sequence[AlertRow], standing: Sequence[AlertRow], day: str) -> Message:
    """A day's less urgent alerts, by rule and host, those that stand first."""
    open_courses = {row.course for row in standing}
    lines, blocks = [], []
    counted = Counter(row.course for row in rows if row.event.raised)
    last = {row.course: row.event for row in rows}
    for course in sorted(last, key=lambda c: (c not in open_courses, c)):
        event, times = last[course], counted[course]
        how = "stands" if course in open_courses else "over"
        often = f", {times} times" if times > 1 else ""
        lines.append(f"- [{how}{often}] {event.text}")
        blocks.append(f"<li><b>{escape(how)}{escape(often)}</b> {escape(event.text)}</li>")
    hosts = {event.host for event in last.values()}
    title = f"Talla: {len(last)} less urgent alerts of {_hosts(sorted(hosts))}, {day}"
    return Message(title, "\n".join(lines) + "\n", _page(f"<ul>{''.join(blocks)}</ul>"))


def sample_message(time: float, zone: tzinfo) -> Message:
    """What `notify --test` sends."""
    when = f"{datetime.fromtimestamp(time, zone):%Y-%m-%d %H:%M %Z}"
    text = (
        "This is a sample, sent by talla-advisor notify --test. A real alert says here which host"
        " and GPU, whose job it is, since when, what it has cost so far, and what to look at first."
    )
    event = Event(
        time,
        "sample-host",
        "alert",
        text,
        Severity.INFO,
        None,
        "sample",
        True,
        {"title": "A sample from Talla", "subject": "host", "since": when},
    )
    return Message("Talla: a sample", text + "\n", _page(_block(event)), Severity.INFO, (event,))


def _title(events: Sequence[Event], raised: Sequence[Event]) -> str:
    hosts = _hosts(list(dict.fromkeys(event.host for event in events)))
    if len(events) == 1:
        event = events[0]
        title = event.attributes.get("title") or event.text.split(". ")[0]
        return f"Talla: {'' if event.raised else 'over: '}{title}"
    over = len(events) - len(raised)
    if not raised:
        return f"Talla: {over} alerts of {hosts} are over"
    worst = min((e.severity for e in raised), key=_ORDER.index).value
    tail = f", {over} over" if over else ""
    return f"Talla: {len(raised)} alerts of {hosts} ({worst}){tail}"


def _hosts(hosts: Sequence[str]) -> str:
    shown = ", ".join(hosts[:3])
    return shown if len(hosts) <= 3 else f"{shown} and {len(hosts) - 3} more"


def _text(event: Event) -> str:
    what = event.severity.value.upper() if event.raised else "OVER"
    return f"{what} {event.host} {event.rule}\n{event.text}"


def _block(event: Event) -> str:
    colour = _COLOURS[event.severity] if event.raised else "#2e6b34"
    what = event.severity.value if event.raised else "over"
    return (
        f'<div style="border-left:4px solid {colour};margin:0 0 14px;padding:2px 0 2px 12px">'
        f'<div style="color:{colour};font-weight:600">{escape(what)} · {escape(event.host)} ·'
        f" {escape(event.rule or '')}</div><div>{escape(event.text)}</div></div>"
    )


def _page(body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"></head>'
        f'<body style="{_STYLE}">{body}</body></html>'
    )


__all__ = ["digest_of", "message_of", "sample_message"]
