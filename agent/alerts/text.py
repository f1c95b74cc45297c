"""What an alert says to the person on call: where, whose, since when, what it cost, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agent.alerts.exemptions import Job
from agent.alerts.rulebook import Rule
from telemetry.event import Event
from telemetry.state import WindowState
from telemetry.window import Key

_JOULES_PER_KWH = 3.6e6
_MOST_JOBS = 4
_SCOPES_WITH_COST = ("gpu", "host")


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known at a transition; times are Unix seconds."""

    host: str
    key: Key
    label: str
    since: int
    until: int
    gpus: int = 0
    energy_joules: float | None = None
    value: float | None = None
    state: WindowState | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    jobs: tuple[Job, ...] = ()
    why: str | None = None


def alert_event(rule: Rule, at: Situation, time: int, *, raised: bool) -> Event:
    """The transition as an event of kind `alert`.

    `attributes` hold the parts of the text one by one, for channels that lay them out.
    """
    attributes = dict(_attributes(rule, at))
    subject = at.label or " ".join(at.key[1:]) or at.host
    value = value_text(rule, at.value)
    title = rule.title.format(subject=subject, host=at.host, value=value)
    title = " ".join(title.split())
    if not rule.title.startswith("{"):  # names of hosts stay as they are
        title = title[:1].upper() + title[1:]
    lines = _lines(attributes, at, raised)
    text = f"{title}{'' if raised else ' - over'}. {' '.join(lines)}"
    if raised:
        text = f"{text} Look first at: {rule.look}."
    return Event(
        time=float(time),
        host=at.host,
        kind="alert",
        text=text.strip(),
        severity=rule.severity,
        gpu_uuid=at.key[1] if at.key[0] == "gpu" else None,
        rule=rule.name,
        raised=raised,
        attributes={
            "title": title,
            "subject": " ".join(at.key),
            "label": subject,
            **attributes,
            **({"look": rule.look} if raised else {}),
        },
    )


def _attributes(rule: Rule, at: Situation) -> Iterable[tuple[str, str]]:
    yield "since", _time(at.since)
    yield "seconds", str(max(0, at.until - at.since))
    if at.gpus and rule.scope in _SCOPES_WITH_COST:
        yield "gpu_hours", f"{at.gpus * max(0, at.until - at.since) / 3600:.2f}"
        if at.energy_joules is not None:
            yield "kwh", f"{at.energy_joules / _JOULES_PER_KWH:.2f}"
    jobs = [text for job in at.jobs if (text := job_text(job))]
    if jobs:
        yield "jobs", "; ".join(dict.fromkeys(jobs[:_MOST_JOBS]))
        if len(jobs) > _MOST_JOBS:
            yield "more_jobs", str(len(jobs) - _MOST_JOBS)
    owners = dict.fromkeys(n for job in at.jobs for n in (job.owner or job.user,) if n)
    if owners:
        yield "owner", ", ".join(owners)
    workloads = dict.fromkeys(job.workload for job in at.jobs if job.workload)
    if workloads:
        yield "workload", ", ".join(workloads)
    if at.value is not None:
        yield "value", value_text(rule, at.value)
    if at.state is not None and rule.state is at.state.state:
        if at.state.cause is not None:
            yield "cause", at.state.cause.value
        if at.state.evidence:
            yield "evidence", "; ".join(at.state.evidence)
    yield from ((name, text) for name, text in at.facts.items() if text)
    if at.why:
        yield "why", at.why


def _lines(attributes: Mapping[str, str], at: Situation, raised: bool) -> Iterable[str]:
    lasted = duration_text(max(0, at.until - at.since))
    yield f"Since {attributes['since']} ({lasted})." if raised else f"It lasted {lasted}."
    if at.why:
        yield f"{at.why[:1].upper()}{at.why[1:]}."
    if "jobs" in attributes:
        yield f"Whose: {attributes['jobs']}."
    if "cause" in attributes:
        yield f"Cause: {attributes['cause'].replace('_', ' ')}."
    if "xid" in attributes:
        yield f"{attributes['xid']}."
    if "collector" in attributes and attributes.get("value"):
        yield f"Which: {attributes['collector']}."
    if "error" in attributes and raised:
        yield f"The driver says: {attributes['error']}."
    if raised and "evidence" in attributes:
        yield f"Seen: {attributes['evidence']}."
    if "gpu_hours" in attributes:
        cost = f"{attributes['gpu_hours']} GPU-hours"
        if "kwh" in attributes:
            cost += f" and {attributes['kwh']} kWh"
        yield f"{'So far' if raised else 'In all'} {cost}."


def job_text(job: Job) -> str:
    """Whose work, and what: `ana (pid 4711, training, torchrun)`."""
    who = job.owner or job.user
    if who is not None and job.user not in (None, who) and job.owner_kind != "user":
        who = f"{who} of {job.user}"
    what = [f"pid {job.pid}"] if job.pid else []
    what += [part for part in (job.workload, job.tool, job.model) if part]
    if who is None:
        return ", ".join(what)
    return f"{who} ({', '.join(what)})" if what else who


def value_text(rule: Rule, value: float | None) -> str:
    """A level with its unit, for people."""
    if value is None or rule.metric is None:
        return "an unknown share" if value is None else f"{value:g}"
    unit = rule.declared().unit
    if unit == "ratio":
        return f"{value:.0%}"
    if unit == "seconds":
        return duration_text(value)
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit.startswith("bytes") and value >= size:
            return f"{value / size:.1f} {prefix}{'B/s' if unit.endswith('second') else 'B'}"
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.3g}"


def duration_text(seconds: float) -> str:
    """A length of time in its two largest units: `2 h 5 min`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86_400
    if days:
        return f"{days} d {hours % 24} h" if hours % 24 else f"{days} d"
    if hours:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{minutes} min"


def _time(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


__all__ = ["Situation", "alert_event", "duration_text", "job_text", "value_text"]
