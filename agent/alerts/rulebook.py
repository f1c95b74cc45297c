"""Alert rules as data: read from TOML, checked, and changed by a user's own folder.

A rule looks at one state or one declared metric; nothing here is an expression. Files of the
user's folder (by default /etc/talla/rules.d) are read after Talla's own, in order of name:

    [[rule]]                # the name of a shipped rule: its keys are changed; a new name: added
    name = "gpu_idle_held"
    raise_seconds = 7200    # enabled = false silences it
    [[exemption]]           # where rules do not apply, see `Exemption`
    rules = ["host_idle"]
    hosts = ["spare-*"]
    reason = "bought for the summer"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from agent.alerts.exemptions import Exemption, read_exemption
from agent.alerts.rule_series import Series, SeriesError, read_series
from agent.errors import ConfigError
from telemetry.event import Severity
from telemetry.metrics import Metric, family
from telemetry.state import Note, State

SCOPES = ("gpu", "engine", "host", "mount", "agent")
DEFAULT_FOLDER = "/etc/talla/rules.d"
_TIERS = (10, 300)


@dataclass(frozen=True, slots=True)
class Rule:
    """When an alert is raised and cleared, and what it says.

    `raise_at` and `clear_at` differ, so that a level between them changes nothing; where
    `clear_at` is the larger one, low values raise. `tier` is the window that is judged. Names in
    `suppresses`, or `scope:gpu` for all rules of a scope, are silent for the same subject while
    this one is raised. `absent` says what no reading means: `keep` things as they are, or `clear`.
    """

    name: str
    scope: str
    severity: Severity
    title: str
    look: str
    source: str
    raise_seconds: float
    clear_seconds: float
    state: State | None = None
    except_notes: tuple[Note, ...] = ()
    metric: str | None = None
    raise_at: float = 0.0
    clear_at: float = 0.0
    absent: str = "keep"
    tier: int = 10
    suppresses: tuple[str, ...] = ()
    enabled: bool = True
    file: str = ""
    series: tuple[Series, ...] = field(default=(), repr=False)

    def declared(self) -> Metric:
        """The declaration of its metric."""
        for metric in family(self.scope).metrics:
            if self.metric in [name for _, name in metric.fields()]:
                return metric
        raise KeyError(self.metric)

    def silences(self, other: Rule) -> bool:
        """Whether `other` is silent for a subject while this one is raised."""
        named = other.name in self.suppresses or f"scope:{other.scope}" in self.suppresses
        return named and other.name != self.name


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The rules that are on, those that silence others first, and the exemptions."""

    rules: tuple[Rule, ...]
    exemptions: tuple[Exemption, ...] = ()

    @classmethod
    def load(cls, folder: str | Path | None = None, *, series: bool = True) -> Rulebook:
        """Talla's rules, changed by the files of `folder` if it is there.

        Without `series` the test series are checked and forgotten. Raises ConfigError naming
        file, rule and key.
        """
        tables: dict[str, tuple[dict[str, Any], str]] = {}
        exemptions: list[Exemption] = []
        for name, text in _files(folder):
            for table in _rules_of(name, text, exemptions):
                _merge(tables, table, name)
        rules = [_rule(table, file) for table, file in tables.values()]
        known = {rule.name for rule in rules} | {f"scope:{scope}" for scope in SCOPES}
        for rule in rules:
            for other in rule.suppresses:
                if other not in known:
                    raise ConfigError(_at(rule.file, rule.name, "suppresses", f"no rule {other!r}"))
        on = [rule if series else replace(rule, series=()) for rule in rules if rule.enabled]
        return cls(tuple(_ordered(on)), tuple(exemptions))


def _files(folder: str | Path | None) -> Iterator[tuple[str, str]]:
    shipped = resources.files("agent.alerts").joinpath("rules")
    for entry in sorted(shipped.iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".toml"):
            yield entry.name, entry.read_text("utf-8")
    if folder is None:
        return
    try:
        # Listed by name: a glob would pass over a folder that may not be read, without a word.
        for name in sorted(os.listdir(folder)):
            if name.endswith(".toml"):
                path = Path(folder) / name
                yield str(path), path.read_text("utf-8")
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(
            f"{error.filename or folder}: cannot be read ({error.strerror})"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{folder}: a file there is no UTF-8 text") from None


def _rules_of(name: str, text: str, exemptions: list[Exemption]) -> list[dict[str, Any]]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}: is no valid TOML: {error}") from None
    odd = set(document) - {"rule", "exemption"}
    if odd:
        raise ConfigError(f"{name}: {min(odd)}: expected [[rule]] or [[exemption]]")
    for table in _tables(name, document, "exemption"):
        exemptions.append(read_exemption(table, name))
    return _tables(name, document, "rule")


def _tables(name: str, document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = document.get(key, [])
    if not isinstance(found, list) or not all(isinstance(t, dict) for t in found):
        raise ConfigError(f"{name}: {key}: expected [[{key}]]")
    return found


def _merge(tables: dict[str, tuple[dict[str, Any], str]], table: dict[str, Any], file: str) -> None:
    rule = table.get("name")
    if not isinstance(rule, str) or not rule.isidentifier():
        raise ConfigError(f"{file}: rule: name: expected a name such as gpu_idle_held")
    before, _ = tables.get(rule, ({}, ""))
    merged = {**before, **table}
    if before and "series" not in table and set(table) - {"name", "enabled", "severity", "look"}:
        merged.pop("series", None)  # the shipped series show the shipped levels
    tables[rule] = merged, file


def _rule(table: Mapping[str, Any], file: str) -> Rule:
    name = table["name"]
    allowed = {f.name: f for f in fields(Rule) if f.name != "file"}
    for key in table:
        if key not in allowed:
            expected = ", ".join(allowed)
            raise ConfigError(_at(file, name, key, f"no such key; expected one of {expected}"))
    for key, f in allowed.items():
        if key not in table and f.default is MISSING and f.default_factory is MISSING:
            raise ConfigError(_at(file, name, key, "is missing"))
    values = {key: _value(key, value, file, name) for key, value in table.items()}
    rule = Rule(**values, file=file)
    _check(rule, table)
    return rule


def _value(key: str, value: Any, file: str, rule: str) -> Any:
    try:
        match key:
            case "severity":
                return Severity(value)
            case "state":
                return State(value)
            case "except_notes":
                return tuple(Note(note) for note in value)
            case "series":
                return tuple(read_series(entry) for entry in value)
            case "suppresses":
                return tuple(str(name) for name in value)
            case "raise_at" | "clear_at" | "raise_seconds" | "clear_seconds":
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise ValueError(f"expected a number, found {value!r}")
                return float(value)
            case "tier":
                if value not in _TIERS:
                    raise ValueError("expected 10 or 300")
            case "enabled":
                if not isinstance(value, bool):
                    raise ValueError("expected true or false")
            case "absent":
                if value not in ("keep", "clear"):
                    raise ValueError("expected keep or clear")
            case "scope":
                if value not in SCOPES:
                    raise ValueError(f"expected one of {', '.join(SCOPES)}")
            case _:
                if not isinstance(value, str) or not value.strip():
                    raise ValueError("expected a text, not empty")
    except (ValueError, TypeError, SeriesError) as error:
        raise ConfigError(_at(file, rule, key, str(error))) from None
    return value


def _check(rule: Rule, table: Mapping[str, Any]) -> None:
    def fail(key: str, words: str) -> ConfigError:
        return ConfigError(_at(rule.file, rule.name, key, words))

    if (rule.state is None) == (rule.metric is None):
        raise fail("state", "expected either a state or a metric")
    if rule.state is not None and rule.scope != "gpu":
        raise fail("scope", "expected gpu, since a state is a GPU's")
    if rule.metric is not None:
        try:
            rule.declared()
        except KeyError:
            raise fail("metric", f"no field of {rule.scope} is called {rule.metric!r}") from None
        for key in ("raise_at", "clear_at"):
            if key not in table:
                raise fail(key, "is missing")
        if rule.raise_at == rule.clear_at:
            raise fail("clear_at", "expected another level than raise_at, so that nothing flaps")
    if rule.raise_seconds < 0 or rule.clear_seconds < 0:
        raise fail("raise_seconds", "expected no negative time")
    try:
        rule.title.format(subject="", host="", value="")
    except (KeyError, IndexError, ValueError, AttributeError):
        raise fail("title", "expected only {host}, {subject} and {value} in braces") from None


def _ordered(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Those that silence others before them. Raises ConfigError where two silence each other."""
    left = list(rules)
    while left:
        ready = [r for r in left if not any(o.silences(r) for o in left)]
        if not ready:
            names = ", ".join(rule.name for rule in left)
            raise ConfigError(f"{left[0].file}: these rules silence each other: {names}")
        yield from ready
        left = [rule for rule in left if rule not in ready]


def _at(file: str, rule: str, key: str, words: str) -> str:
    return f"{file}: {rule}: {key}: {words}"


__all__ = ["DEFAULT_FOLDER", "SCOPES", "Rule", "Rulebook"]
