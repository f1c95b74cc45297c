"""Reads and checks the agent's configuration file.

The only module of the agent that imports pydantic. The launcher uses it before the exec into the
daemon, short-lived commands use it directly; the daemon never does.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from agent.config.settings import DEFAULT_PATH, Settings
from agent.config.text import expected
from agent.errors import ConfigError


def load(path: str | None) -> Settings:
    """The settings of a file; without one, of /etc/talla/agent.toml if it is there.

    Raises ConfigError, one line for each mistake, naming file, key and what is expected.
    """
    if path is not None:
        return read(Path(path))
    default = Path(DEFAULT_PATH)
    try:
        present = default.exists()
    except OSError as error:
        raise ConfigError(f"{default}: cannot be read ({error.strerror})") from error
    return read(default) if present else Settings()


def read(path: Path) -> Settings:
    """The settings of a file. Raises ConfigError."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is no UTF-8 text (byte {error.start})") from error
    return parse(text, str(path))


def parse(text: str, name: str) -> Settings:
    """The settings of a TOML text. Raises ConfigError, naming the file as `name`."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{name}: is no valid TOML: {error}") from error
    try:
        # By way of JSON: strict types, and still lists for tuples and tables for dataclasses.
        settings = TypeAdapter(Settings).validate_json(
            json.dumps(document, default=str), strict=True
        )
    except ValidationError as error:
        mistakes = error.errors(include_url=False, include_context=False)
        lines = dict.fromkeys(_mistake(m["type"], m["loc"], m["input"]) for m in mistakes)
        raise ConfigError(
            "\n".join(_place(name, text, loc) + what for loc, what in lines)
        ) from None
    if (wrong := _wrong_url(settings.influx.url)) is not None:
        raise ConfigError(_place(name, text, ("influx", "url")) + f"expected {wrong}")
    return settings


def _mistake(kind: str, loc: tuple[int | str, ...], found: Any) -> tuple[tuple[Any, ...], str]:
    if kind == "unexpected_keyword_argument":
        return loc, _unknown(loc)
    # The location of a union's branch or a tuple's item ends in more than the keys of the file.
    shown = json.dumps(found, ensure_ascii=False)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return loc, f"expected {expected(_annotation(loc))}, found {shown}"


def _unknown(loc: tuple[int | str, ...]) -> str:
    owner = _annotation(loc[:-1])
    known = [f.name for f in fields(_dataclass(owner))]
    close = difflib.get_close_matches(str(loc[-1]), known, 1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"there is no such setting; {hint}expected one of: {', '.join(known)}"


def _annotation(loc: tuple[int | str, ...]) -> Any:
    """The declared type at a place in the document."""
    here: Any = Settings
    for step in loc:
        if isinstance(step, int):
            here = _arguments(here)[0]
        else:
            here = get_type_hints(_dataclass(here), include_extras=True)[step]
    return here


def _arguments(annotation: Any) -> tuple[Any, ...]:
    arguments = get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return _arguments(arguments[0])
    return arguments


def _dataclass(annotation: Any) -> Any:
    if is_dataclass(annotation):
        return annotation
    return _dataclass(get_args(annotation)[0])


def _place(name: str, text: str, loc: tuple[Any, ...]) -> str:
    line = _line(text, loc)
    keys = [str(step) if not isinstance(step, int) else f"[{step}]" for step in loc]
    where = f"{name}:{line}" if line else name
    return f"{where}: {'.'.join(keys).replace('.[', '[')}: "


def _line(text: str, loc: tuple[Any, ...]) -> int | None:
    """The line that holds a key, by a plain look: tomllib tells no places."""
    names = [step for step in loc if isinstance(step, str)]
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
            table = [part.strip().strip("\"'") for part in header[1].split(".")]
            if table == names:
                return number
        elif key := re.match(r"\s*([^=#]+?)\s*=", line):
            path = [*table, *(part.strip().strip("\"'") for part in key[1].split("."))]
            if path[: len(names)] == names:
                return number
    return None


def _wrong_url(url: str | None) -> str | None:
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
        parts = urlsplit("")
    if not good:
        return "an address such as https://influx.example.org:8086"
    if parts.username is not None or parts.password is not None:
        return "an address without user and password (they belong in username and token_file)"
    if parts.query or parts.fragment:
        return "an address without ? or #"
    return None


__all__ = ["load", "parse", "read"]
