"""Smaller hardware that a look-back can be replayed on."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from advisor.catalogue import Gpu, find_gpu
from advisor.phase import Phase


@dataclass(frozen=True, slots=True)
class Option:
    """So many of a card. `rule` is the guide's sentence that names it, None for fewer of the same.

    `memory_bytes` is that of each card.
    """

    gpu: Gpu | None
    name: str
    count: int
    memory_bytes: float
    rule: str | None = None

    @property
    def same_card(self) -> bool:
        """Whether it is fewer of what is there."""
        return self.rule is None


@dataclass(frozen=True, slots=True)
class _Entry:
    rule: str
    phases: frozenset[str]
    gpu: Gpu
    counts: tuple[int, ...]


def documented(phases: Iterable[Phase]) -> Iterator[Option]:
    """The options that the guides name for work which is all of these phases."""
    wanted = {phase.value for phase in phases}
    for entry in _entries():
        if wanted and wanted <= entry.phases:
            for count in entry.counts:
                gpu = entry.gpu
                yield Option(gpu, gpu.name, count, float(gpu.memory_bytes), entry.rule)


@cache
def _entries() -> tuple[_Entry, ...]:
    """The shipped options. Raises ValueError for a card that the catalogue does not know."""
    text = resources.files("advisor.sizing").joinpath("options.toml").read_text("utf-8")
    found = []
    for table in tomllib.loads(text)["option"]:
        gpu = find_gpu(table["gpu"])
        if gpu is None:
            raise ValueError(f"options.toml: {table['gpu']!r} is not in the GPU catalogue")
        entry = _Entry(table["rule"], frozenset(table["phases"]), gpu, tuple(table["counts"]))
        found.append(entry)
    return tuple(found)
