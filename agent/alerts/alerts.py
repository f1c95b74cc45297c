"""Closed windows and states become alert transitions. Pure: it reads no clock and no file.

For a rule and a subject an alert is raised once what it looks for has lasted for `raise_seconds`,
and cleared once it has been gone for `clear_seconds`; raise and clear therefore alternate. What no
window shows neither raises nor clears: a pending alert survives a hole of a tenth of its time (at
least a minute), a raised one stays for a day, after which its subject counts as gone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum

from agent.alerts.exemptions import Job
from agent.alerts.rulebook import Rule, Rulebook
from agent.alerts.text import Situation, alert_event
from telemetry.event import Event, Severity
from telemetry.state import State, WindowState
from telemetry.window import Key

_HOLE_RATIO, _HOLE_SECONDS = 0.1, 60.0
_FORGET_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What one window shows of a subject.

    `values` are its row's fields with those that follow from several windows; `gpus` counts the
    GPUs that it stands for, and `energy_joules` is the sum of their counters.
    """

    values: Mapping[str, float]
    state: WindowState | None = None
    label: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    jobs: tuple[Job, ...] = ()
    gpus: int = 0
    energy_joules: float | None = None


class _Looks(Enum):
    HOLDS = "holds"
    BETWEEN = "between"
    CLEAR = "clear"
    ABSENT = "absent"


@dataclass(slots=True)
class _Course:
    """How it stands with one rule and subject, from the first window that held on."""

    since: int
    last: int
    energy_joules: float | None = None
    raised: int | None = None
    clear_since: int | None = None
    label: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    gpus: int = 0


class Alerts:
    """All rules over one host. `memory` and `restore` carry it over a restart."""

    def __init__(self, book: Rulebook, host: str) -> None:
        self._book = book
        self._host = host
        self._courses: dict[tuple[str, Key], _Course] = {}
        self.changed = False
        """Whether something began or ended since `memory` was last taken."""

    def raised(self) -> list[tuple[str, Key]]:
        """Rule and subject of the alerts that stand, in order."""
        return sorted(k for k, course in self._courses.items() if course.raised is not None)

    def step(self, tier: int, start: int, end: int, seen: Mapping[Key, Seen]) -> list[Event]:
        """Judges one window of a tier, [start, end) in Unix seconds; the transitions."""
        scopes: dict[str, dict[Key, Seen]] = defaultdict(dict)
        for key, what in seen.items():
            scopes[key[0]][key] = what
        events = [
            event
            for rule in self._book.rules
            if rule.tier == tier
            for event in self._rule(rule, start, end, scopes[rule.scope])
        ]
        events += self._orphans(end)
        return events

    def _rule(self, rule: Rule, start: int, end: int, seen: Mapping[Key, Seen]) -> Iterator[Event]:
        """`seen` holds the subjects of the rule's scope."""
        for key, what in seen.items():
            looks = self._looks(rule, what, end)
            yield from self._judge(rule, key, looks, start, end, what)
        gone = [k for k in self._courses if k[0] == rule.name and k[1] not in seen]
        for _, key in gone:
            looks = _Looks.CLEAR if rule.absent == "clear" else _Looks.ABSENT
            yield from self._judge(rule, key, looks, start, end, None)

    def _looks(self, rule: Rule, what: Seen, end: int) -> _Looks:
        looks = _state_looks(rule, what) if rule.state is not None else _metric_looks(rule, what)
        if looks is _Looks.HOLDS and any(
            e.covers(rule.name, self._host, what.jobs, end) for e in self._book.exemptions
        ):
            return _Looks.CLEAR
        return looks

    def _judge(
        self, rule: Rule, key: Key, looks: _Looks, start: int, end: int, what: Seen | None
    ) -> Iterator[Event]:
        course = self._courses.get((rule.name, key))
        if course is not None and course.since >= end:  # the clock was set back
            course.since = course.last = start
        if course is None or course.raised is None:
            course = self._pending(rule, key, course, looks, start, end, what)
            if course is None or course.last - course.since < rule.raise_seconds:
                return
            if looks is _Looks.HOLDS and self._silenced(rule, key) is None:
                course.raised = end
                self.changed = True
                yield self._event(rule, key, course, end, what, None)
            return
        if what is not None and what.label:
            course.label = what.label
        silenced = self._silenced(rule, key, raised=True)
        if silenced is not None:
            yield self._clear(rule, key, course, end, what, f"covered by {silenced}")
        elif looks is _Looks.CLEAR:
            if course.clear_since is None or course.clear_since > start:
                course.clear_since = start
                self.changed = True
            if end - course.clear_since >= rule.clear_seconds:
                yield self._clear(rule, key, course, end, what, None)
        elif looks is not _Looks.ABSENT:
            self.changed |= course.clear_since is not None
            course.clear_since, course.last = None, end
        elif end - course.last >= max(_FORGET_SECONDS, rule.clear_seconds):
            yield self._clear(rule, key, course, end, what, "no longer seen")

    def _pending(
        self,
        rule: Rule,
        key: Key,
        course: _Course | None,
        looks: _Looks,
        start: int,
        end: int,
        what: Seen | None,
    ) -> _Course | None:
        """The course of what is not raised (yet) after this window; None where there is none."""
        hole = max(_HOLE_SECONDS, _HOLE_RATIO * rule.raise_seconds)
        if course is not None and not -hole <= start - course.last <= hole:
            self._drop(rule, key)
            course = None
        if looks is _Looks.ABSENT:
            return course
        if looks is not _Looks.HOLDS or what is None:
            if course is not None:
                self._drop(rule, key)
            return None
        if course is None:
            course = _Course(start, end, what.energy_joules)
            self._courses[rule.name, key] = course
            self.changed = True
        course.last, course.label = end, what.label or course.label
        course.gpus, course.facts = what.gpus, {**course.facts, **what.facts}
        return course

    def _drop(self, rule: Rule, key: Key) -> None:
        del self._courses[rule.name, key]
        self.changed = True

    def _silenced(self, rule: Rule, key: Key, *, raised: bool = False) -> str | None:
        """The rule that speaks for this one here; with `raised`, only one that is raised.

        What is about to be raised holds others back already, so that one cause is one alert.
        """
        for other in self._book.rules:
            if not other.silences(rule):
                continue
            subjects = [k for r, k in self._courses if r == other.name]
            for subject in subjects:
                if other.scope == rule.scope and not _covers(subject, key):
                    continue
                if self._courses[other.name, subject].raised is not None or not raised:
                    return other.name
        return None

    def _clear(
        self, rule: Rule, key: Key, course: _Course, end: int, what: Seen | None, why: str | None
    ) -> Event:
        self._drop(rule, key)
        return self._event(rule, key, course, end, what, why)

    def _event(
        self, rule: Rule, key: Key, course: _Course, end: int, what: Seen | None, why: str | None
    ) -> Event:
        cleared = (rule.name, key) not in self._courses
        energy = None
        if what is not None and course.energy_joules is not None and what.energy_joules is not None:
            energy = what.energy_joules - course.energy_joules
        situation = Situation(
            host=self._host,
            key=key,
            label=course.label,
            since=course.since,
            until=(course.clear_since or course.last) if cleared else end,
            gpus=course.gpus,
            energy_joules=energy if energy is not None and energy >= 0 else None,
            value=None if what is None or rule.metric is None else what.values.get(rule.metric),
            state=None if what is None else what.state,
            facts={**course.facts, **(what.facts if what is not None else {})},
            jobs=() if what is None else what.jobs,
            why=why,
        )
        return alert_event(rule, situation, end, raised=not cleared)

    def _orphans(self, end: int) -> Iterator[Event]:
        """Ends alerts whose rule was taken away or switched off."""
        names = {rule.name for rule in self._book.rules}
        for name, key in [k for k in self._courses if k[0] not in names]:
            course = self._courses.pop((name, key))
            self.changed = True
            if course.raised is not None:
                words = ("{subject} of {host}", "-", "-")
                rule = Rule(name, key[0], Severity.INFO, *words, 0.0, 0.0)
                situation = Situation(self._host, key, course.label, course.since, end)
                why = replace(situation, facts=course.facts, why="its rule was switched off")
                yield alert_event(rule, why, end, raised=False)

    # Over a restart

    def memory(self) -> list[dict[str, object]]:
        """What must be known after a restart, as JSON values."""
        self.changed = False
        return [
            {"rule": rule, "key": list(key), **asdict(course)}
            for (rule, key), course in self._courses.items()
        ]

    def restore(self, memory: object) -> None:
        """Takes up what `memory` gave. What cannot be understood is left out."""
        for entry in memory if isinstance(memory, list) else ():
            try:
                values = dict(entry)
                name, key = str(values.pop("rule")), tuple(map(str, values.pop("key")))
                self._courses[name, key] = _Course(**values)
            except (TypeError, ValueError, KeyError):
                continue


def _covers(subject: Key, key: Key) -> bool:
    """Whether they are the same, or `key` is an instance (`UUID/GI/CI`) of the card `subject`."""
    return subject == key or (key[0] == "gpu" and key[1].startswith(f"{subject[1]}/"))


def _state_looks(rule: Rule, what: Seen) -> _Looks:
    if what.state is None or what.state.state is State.UNKNOWN:
        return _Looks.ABSENT
    same = what.state.state is rule.state and what.state.note not in rule.except_notes
    return _Looks.HOLDS if same else _Looks.CLEAR


def _metric_looks(rule: Rule, what: Seen) -> _Looks:
    value = what.values.get(rule.metric or "")
    if value is None:
        return _Looks.CLEAR if rule.absent == "clear" else _Looks.ABSENT
    sign = 1.0 if rule.raise_at > rule.clear_at else -1.0
    if sign * value >= sign * rule.raise_at:
        return _Looks.HOLDS
    return _Looks.CLEAR if sign * value <= sign * rule.clear_at else _Looks.BETWEEN


__all__ = ["Alerts", "Seen"]
