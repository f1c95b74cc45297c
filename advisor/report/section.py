"""What a section of the report is, and how the sections are found."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from advisor.message import Message
from advisor.report.report import Report, Server

S = TypeVar("S", Report, Server)


@dataclass(frozen=True, slots=True)
class Section(Generic[S]):
    """One section: `build` makes the dataclass that its template shows, None for no section.

    Sections stand in the order of their `place`: those of the fleet from 0, first screen below
    100, what explains the rest from 200. Templates are `sections/NAME.html` and `NAME.md`.
    """

    name: str
    place: int
    title: Message
    build: Callable[[S], object | None]


class FleetSection(Section[Report]):
    """A section of the whole report."""

    __slots__ = ()


class ServerSection(Section[Server]):
    """A section of each server."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Sections:
    """All sections, in order."""

    fleet: tuple[FleetSection, ...]
    server: tuple[ServerSection, ...]

    @classmethod
    def find(cls) -> Sections:
        """The sections of the modules under `sections/`, each named SECTION there."""
        from advisor.report import sections

        found = [
            importlib.import_module(f"{sections.__name__}.{module.name}").SECTION
            for module in pkgutil.iter_modules(sections.__path__)
        ]
        found.sort(key=lambda s: s.place)
        return cls(
            tuple(s for s in found if isinstance(s, FleetSection)),
            tuple(s for s in found if isinstance(s, ServerSection)),
        )
