"""Reads the tables of a scenario strictly: an unknown key or a wrong type is an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from telemetry.simulation.patterns import Pattern, parse_pattern
from telemetry.simulation.quantity import Dimension, parse_quantity


class ScenarioError(ValueError):
    """A scenario that cannot be read. The message names file, key and what is expected."""


class Table:
    """One table of a TOML file. Every key must be asked for before `close`."""

    def __init__(self, data: Mapping[str, Any], file: str, path: str = "") -> None:
        self._data = data
        self._file = file
        self._path = path
        self._asked: set[str] = set()

    def fail(self, key: str, expected: str) -> NoReturn:
        """Raises ScenarioError for the key."""
        raise ScenarioError(f"{self._file}: {self._name(key)}: expected {expected}")

    def close(self) -> None:
        """Raises ScenarioError where the table holds a key that nobody asked for."""
        for key in self._data:
            if key not in self._asked:
                known = ", ".join(sorted(self._asked))
                where = f" in [{self._path}]" if self._path else ""
                raise ScenarioError(
                    f"{self._file}: {self._name(key)}: unknown key; known{where}: {known}"
                )

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        self._asked.add(key)
        return key in self._data

    def has_table(self, key: str) -> bool:
        """Whether the key holds something that no heir set to false."""
        return self.has(key) and self._data[key] is not False

    def text(
        self, key: str, default: str | None = None, *, among: tuple[str, ...] | None = None
    ) -> str:
        """A text; `default` where the key is absent, an error where there is no default."""
        value = self._get(key, default)
        known = "a text" if among is None else f"one of {', '.join(among)}"
        expected = known if among != () else "one that the server has; it has none"
        if not isinstance(value, str) or (among is not None and value not in among):
            self.fail(key, expected)
        return value

    def text_or_none(self, key: str) -> str | None:
        return self.text(key) if self.has(key) else None

    def number(
        self,
        key: str,
        default: float | None = None,
        *,
        at_least: float = 0.0,
        at_most: float | None = None,
    ) -> float:
        """A number in its bounds."""
        value = self._get(key, default)
        limit = f"a number from {at_least:g}" + ("" if at_most is None else f" to {at_most:g}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(key, limit)
        if value < at_least or (at_most is not None and value > at_most):
            self.fail(key, limit)
        return float(value)

    def whole(self, key: str, default: int | None = None, *, at_least: int = 0) -> int:
        """A whole number."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
            self.fail(key, f"a whole number from {at_least}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._get(key, default)
        if not isinstance(value, bool):
            self.fail(key, "true or false")
        return value

    def quantity(self, key: str, dimension: Dimension, default: float | None = None) -> float:
        """A quantity in base units, written as a number or as text with a unit."""
        value = self._get(key, default)
        if isinstance(value, str):
            try:
                return parse_quantity(value, dimension)
            except ValueError as error:
                self.fail(key, str(error))
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            self.fail(key, dimension.expected)
        return float(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, empty where absent."""
        value = self._get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(key, "a list of texts")
        return tuple(value)

    def numbers(self, key: str, length: int) -> tuple[float, ...]:
        """A list of that many numbers."""
        value = self._get(key, None)
        if (
            not isinstance(value, list)
            or len(value) != length
            or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in value)
        ):
            self.fail(key, f"a list of {length} numbers")
        return tuple(float(x) for x in value)

    def raw(self, key: str, default: Any = None) -> Any:
        """Whatever is there, for the caller to check."""
        return self._get(key, default)

    def table(self, key: str) -> Table:
        """A table; an empty one where the key is absent."""
        value = self._get(key, {})
        if not isinstance(value, dict):
            self.fail(key, "a table")
        return Table(value, self._file, self._name(key))

    def named_tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """The tables of a table, with their names. One that an heir set to false is left out."""
        inner = self.table(key)
        for name, value in inner._data.items():
            inner._asked.add(name)
            if value is not False:
                yield name, inner.table(name)

    def listed_tables(self, key: str) -> Iterator[Table]:
        """The tables of a list."""
        value = self._get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fail(key, "a list of tables")
        for number, item in enumerate(value):
            yield Table(item, self._file, f"{self._name(key)}[{number}]")

    def patterns(self, key: str, known: frozenset[str]) -> dict[str, Pattern]:
        """A table of patterns by metric; each name must be `known`."""
        inner = self.table(key)
        found: dict[str, Pattern] = {}
        for name, value in inner._data.items():
            if name not in known:
                inner.fail(name, f"a metric among {', '.join(sorted(known))}")
            try:
                found[name] = parse_pattern(value)
            except ValueError as error:
                inner.fail(name, str(error))
        return found

    def _name(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def _get(self, key: str, default: Any) -> Any:
        self._asked.add(key)
        value = self._data.get(key, default)
        if value is None:
            raise ScenarioError(f"{self._file}: {self._name(key)}: missing")
        return value
