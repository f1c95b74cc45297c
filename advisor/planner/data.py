"""The planner's data files as typed values: constants, quantisations, recipes, engines."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

Parallel = Literal["tensor", "layers"]
Prefill = Literal["chunked", "whole", "ubatch"]


class PlanError(ValueError):
    """A request that cannot be planned; the message is one line that says what to give."""


@dataclass(frozen=True, slots=True)
class Constant:
    name: str
    value: float
    unit: str
    source: str
    fitted: bool
    range: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Quant:
    """Bits for each parameter of a stored model."""

    name: str
    linear: float
    embedding: float
    head: float
    other: float
    experts_only: bool
    gguf: bool
    source: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """Bytes for each trained parameter; see recipes.toml."""

    name: str
    weights: float
    gradients: float
    accumulated: float
    optimizer: float
    source: str


@dataclass(frozen=True, slots=True)
class Engine:
    name: str
    parallel: Parallel
    utilization: float | None
    share_holds_activations: bool
    block: int
    prefill: Prefill
    source: str


def read(file: str) -> dict[str, dict[str, object]]:
    """A data file of this package: tables by name."""
    text = resources.files(__package__).joinpath(file).read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def constants() -> Mapping[str, Constant]:
    return {
        name: Constant(
            name,
            _float(entry, "value"),
            str(entry["unit"]),
            str(entry["source"]),
            bool(entry.get("fitted", False)),
            _range(entry),
        )
        for name, entry in read("constants.toml").items()
    }


_OTHERS: ContextVar[Mapping[str, float] | None] = ContextVar("constants_in_place", default=None)


def constant(name: str) -> float:
    others = _OTHERS.get()
    if others is not None and name in others:
        return others[name]
    return constants()[name].value


@contextmanager
def in_place_of_constants(values: Mapping[str, float]) -> Iterator[None]:
    """Other values for some constants, within the block and this task alone: to fit them anew."""
    token = _OTHERS.set(values)
    try:
        yield
    finally:
        _OTHERS.reset(token)


@cache
def _quants() -> Mapping[str, Quant]:
    found: dict[str, Quant] = {}
    for name, entry in read("quantization.toml").items():
        quant = Quant(
            name=name,
            linear=_float(entry, "linear"),
            embedding=_float(entry, "embedding", 16.0),
            head=_float(entry, "head", 16.0),
            other=_float(entry, "other", 16.0),
            experts_only=entry.get("scope") == "experts",
            gguf=bool(entry.get("gguf", False)),
            source=str(entry["source"]),
        )
        names = entry.get("names", [])
        for alias in (name, *(names if isinstance(names, list) else [])):
            found[str(alias)] = quant
    return found


def quants() -> tuple[Quant, ...]:
    """Every quantisation, once."""
    return tuple(dict.fromkeys(_quants().values()))


def quant(name: str) -> Quant:
    """A quantisation by name or usual alias. Raises PlanError."""
    found = _quants().get(name.strip().casefold())
    if found is None:
        known = ", ".join(item.name for item in quants())
        raise PlanError(f"--quant {name}: not known; give one of {known}")
    return found


@cache
def recipes() -> Mapping[str, Recipe]:
    return {
        name: Recipe(
            name,
            _float(entry, "weights"),
            _float(entry, "gradients"),
            _float(entry, "accumulated"),
            _float(entry, "optimizer"),
            str(entry["source"]),
        )
        for name, entry in read("recipes.toml").items()
    }


@cache
def engines() -> Mapping[str, Engine]:
    found: dict[str, Engine] = {}
    for name, entry in read("engines.toml").items():
        parallel: Parallel = "tensor" if entry["parallel"] == "tensor" else "layers"
        prefill: Prefill = "whole"
        if entry["prefill"] in ("chunked", "ubatch"):
            prefill = "chunked" if entry["prefill"] == "chunked" else "ubatch"
        found[name] = Engine(
            name=name,
            parallel=parallel,
            utilization=_float(entry, "utilization") if "utilization" in entry else None,
            share_holds_activations=entry.get("share_holds") == "all",
            block=int(_float(entry, "block")),
            prefill=prefill,
            source=str(entry["source"]),
        )
    return found


def _range(entry: Mapping[str, object]) -> tuple[float, float] | None:
    value = entry.get("range")
    return (float(value[0]), float(value[1])) if isinstance(value, list) else None


def _float(entry: Mapping[str, object], key: str, otherwise: float | None = None) -> float:
    value = entry.get(key, otherwise)
    if not isinstance(value, int | float):
        raise ValueError(f"{key} is no number in {dict(entry)}")
    return float(value)
