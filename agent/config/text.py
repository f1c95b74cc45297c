"""Settings described for people: what a setting takes, and the commented default file."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import DocInfo, Ge, Le, Len

from agent.config.settings import DEFAULT_PATH, Example, Settings

_HEAD = f"""\
## Configuration of talla-agent ({DEFAULT_PATH}).
## Each line shows the default, or an example where there is none: remove the # to set it.
## Check an edited file with: talla-agent config --check FILE
"""


@dataclass(frozen=True, slots=True)
class Described:
    """One setting: its annotation taken apart."""

    name: str
    kind: Any
    help: str
    expected: str
    default: Any
    example: Any


def describe(cls: type) -> Iterator[Described]:
    """The settings of a section, in declared order."""
    hints = get_type_hints(cls, include_extras=True)
    for item in fields(cls):
        kind, marks = _parts(hints[item.name])
        yield Described(
            name=item.name,
            kind=kind,
            help=next((m.documentation for m in marks if isinstance(m, DocInfo)), ""),
            expected=expected(hints[item.name]),
            default=_default(item),
            example=next((m.value for m in marks if isinstance(m, Example)), None),
        )


def expected(annotation: Any) -> str:
    """What a setting takes, as a phrase: `a number from 0.5 to 60`, `true or false`."""
    kind, marks = _parts(annotation)
    if get_origin(kind) in (Union, UnionType):
        return expected(Annotated[(_first(kind), *marks)] if marks else _first(kind))
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(get_args(kind))
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        if is_dataclass(_parts(inner)[0]):
            return "a list of tables"
        return f"a list, each {expected(inner)}"
    if is_dataclass(kind):
        return "a table"
    if kind is bool:
        return "true or false"
    if kind is str:
        return "a text, not empty" if any(isinstance(m, Len) for m in marks) else "a text"
    noun = {int: "a whole number", float: "a number"}[kind]
    return noun + _bounds(marks)


def default_toml(root: type = Settings) -> str:
    """The commented default configuration."""
    return _HEAD + "".join(_section(described) for described in describe(root))


def _section(section: Described) -> str:
    lines = ["", f"[{section.name}]", *_comment(section.kind.__doc__)]
    tables: list[str] = []
    for setting in describe(section.kind):
        inner = _parts(get_args(setting.kind)[0])[0] if get_args(setting.kind) else None
        if is_dataclass(inner):
            tables += _table(f"{section.name}.{setting.name}", setting.help, inner)
        else:
            lines += _setting(setting)
    return "\n".join([*lines, *tables]) + "\n"


def _table(name: str, help_text: str, kind: Any) -> list[str]:
    lines = ["", *_comment(help_text), *_comment(kind.__doc__), f"# [[{name}]]"]
    for setting in describe(kind):
        lines += _setting(setting, blank=False)
    return lines


def _setting(setting: Described, *, blank: bool = True) -> list[str]:
    shown = setting.default if setting.default not in (None, ()) else setting.example
    takes = "" if setting.expected.startswith("a text") else f" ({setting.expected})"
    return [
        *([""] if blank else []),
        *_comment(f"{setting.help}{takes}"),
        f"# {setting.name} = {toml_value(shown)}",
    ]


def _comment(text: str | None) -> list[str]:
    return [f"## {line}" for line in textwrap.wrap(text or "", 96)]


def toml_value(value: Any) -> str:
    """A value in TOML's notation."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # a JSON string is a TOML basic string
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.1f}"
    return repr(value)


def _parts(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(annotation) is Annotated:
        kind, *marks = get_args(annotation)
        return kind, tuple(marks)
    return annotation, ()


def _first(union: Any) -> Any:
    return next(k for k in get_args(union) if k is not NoneType)


def _bounds(marks: tuple[Any, ...]) -> str:
    low = next((m.ge for m in marks if isinstance(m, Ge)), None)
    high = next((m.le for m in marks if isinstance(m, Le)), None)
    if low is not None and high is not None:
        return f" from {low} to {high}"
    if low is not None:
        return f", at least {low}"
    return "" if high is None else f", at most {high}"


def _default(item: Field[Any]) -> Any:
    if item.default is not MISSING:
        return item.default
    return None if item.default_factory is MISSING else item.default_factory()


__all__ = ["Described", "default_toml", "describe", "expected", "toml_value"]
