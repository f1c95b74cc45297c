"""A scenario: one server and its work, read from TOML.

    extends = "chatbot"          # another scenario, of which this file changes a few keys
    title = "..."                # one line, for people
    seed = 7
    [server] ...                 # see server.py
    [jobs.NAME] ...              # see job.py; `like = "training"` takes a template's keys

Tables are merged key by key; anything else replaces what was there, and `false` in place of a
table removes it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from telemetry.inventory import Inventory
from telemetry.simulation.job import Job, read_job
from telemetry.simulation.patterns import KINDS
from telemetry.simulation.reader import ScenarioError, Table
from telemetry.simulation.server import Server, read_server


@dataclass(frozen=True, slots=True)
class Scenario:
    """One server and its jobs. `jitter_ratio` is how far levels fall below what is stated."""

    title: str
    seed: int
    jitter_ratio: float
    server: Server
    jobs: tuple[Job, ...]

    def inventory(self) -> Inventory:
        """What an agent on this server would say of it."""
        return self.server.inventory()


def shipped_scenarios() -> tuple[str, ...]:
    """The names of the scenarios that Talla ships."""
    folder = resources.files(__package__).joinpath("scenarios")
    return tuple(sorted(p.name.removesuffix(".toml") for p in folder.iterdir()))


def load_scenario(name_or_path: str | Path) -> Scenario:
    """A shipped scenario by name, or one from a file. Raises ScenarioError."""
    file, data = _load(name_or_path)
    return read_scenario(data, file)


def read_scenario(data: Mapping[str, Any], file: str) -> Scenario:
    """A scenario from its TOML document; `file` is named in errors. Raises ScenarioError."""
    table = Table(_with_templates(data, file), file)
    server = read_server(table.table("server"))
    jobs = tuple(read_job(name, inner, server) for name, inner in table.named_tables("jobs"))
    scenario = Scenario(
        title=table.text("title"),
        seed=table.whole("seed", 0),
        jitter_ratio=table.number("jitter_ratio", 0.02, at_most=0.2),
        server=server,
        jobs=jobs,
    )
    table.close()
    return scenario


def _load(name_or_path: str | Path, depth: int = 0) -> tuple[str, dict[str, Any]]:
    if depth > 8:
        raise ScenarioError(f"{name_or_path}: extends: a chain of more than eight scenarios")
    file, text = _text(name_or_path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{file}: {error}") from None
    base = data.pop("extends", None)
    if base is None:
        return file, data
    if not isinstance(base, str):
        raise ScenarioError(f"{file}: extends: expected the name of a scenario or a path")
    beside = Path(file).parent / base
    _, below = _load(beside if base.endswith(".toml") else base, depth + 1)
    return file, _merge(below, data)


def _text(name_or_path: str | Path) -> tuple[str, str]:
    name = str(name_or_path)
    if name in shipped_scenarios():
        shipped = resources.files(__package__).joinpath("scenarios", f"{name}.toml")
        return f"{name}.toml", shipped.read_text("utf-8")
    try:
        return name, Path(name_or_path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ScenarioError(
            f"{name}: {reason}; give a file, or one of {', '.join(shipped_scenarios())}"
        ) from None


def _with_templates(data: Mapping[str, Any], file: str) -> dict[str, Any]:
    jobs = data.get("jobs", {})
    if not isinstance(jobs, dict):
        return dict(data)
    filled = {name: _fill(name, job, file) for name, job in jobs.items()}
    return {**data, "jobs": filled}


def _fill(name: str, job: Any, file: str) -> Any:
    if not isinstance(job, dict) or "like" not in job:
        return job
    folder = resources.files(__package__).joinpath("templates")
    known = {p.name.removesuffix(".toml"): p for p in folder.iterdir()}
    template = job["like"]
    if not isinstance(template, str) or template not in known:
        raise ScenarioError(f"{file}: jobs.{name}.like: expected one of {', '.join(sorted(known))}")
    below = tomllib.loads(known[template].read_text("utf-8"))
    return _merge(below, {key: value for key, value in job.items() if key != "like"})


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        # A pattern is one value, although TOML writes it as a table.
        if isinstance(value, dict) and isinstance(old, dict) and not set(value) & set(KINDS):
            merged[key] = _merge(old, value)
        else:
            merged[key] = value
    return merged
