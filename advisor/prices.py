"""The user's prices: no figure of money is Talla's own (`prices.example.toml`)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, MinLen

from advisor.errors import ConfigError

Billing = Literal["owned", "hourly", "flat"]
Positive = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Money = NotNegative | tuple[NotNegative, NotNegative]
Factor = Annotated[float, Ge(1)]


@dataclass(frozen=True, slots=True)
class Range:
    """Low and high of a figure that is not known exactly."""

    low: float
    high: float

    def __mul__(self, other: Range | float) -> Range:
        by = other if isinstance(other, Range) else Range(other, other)
        return Range(self.low * by.low, self.high * by.high)

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)


@dataclass(frozen=True, slots=True)
class ServerPrices:
    """What servers of some names cost. A pattern is a shell's (`chat-*`)."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    hosts: Annotated[tuple[str, ...], MinLen(1)]
    billing: Billing
    purchase: Money | None = None
    depreciation_months: Positive | None = None
    opex_per_month: Money | None = None
    rent_per_gpu_hour: Money | None = None
    fee_per_month: Money | None = None

    def __post_init__(self) -> None:
        if self.billing == "hourly" and self.rent_per_gpu_hour is None:
            raise ValueError("billing hourly needs rent_per_gpu_hour")


@dataclass(frozen=True, slots=True)
class Prices:
    """The whole file."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    currency: Annotated[str, MinLen(1)]
    source: Annotated[str, MinLen(1)]
    electricity_per_kwh: Money | None = None
    pue: Factor | tuple[Factor, Factor] = 1.0
    carbon_grams_per_kwh: Money | None = None
    servers: tuple[ServerPrices, ...] = ()

    def of(self, host: str) -> ServerPrices | None:
        """The first table that matches a host."""
        for table in self.servers:
            if any(fnmatchcase(host, pattern) for pattern in table.hosts):
                return table
        return None


def spread(figure: float | tuple[float, float]) -> Range:
    """A figure of the file as a range."""
    return Range(*figure) if isinstance(figure, tuple) else Range(figure, figure)


def load(path: Path) -> Prices:
    """The prices of a file. Raises ConfigError naming the file, the key and what is expected."""
    try:
        return parse(path.read_text("utf-8"), str(path))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8") from None


def parse(text: str, origin: str) -> Prices:
    """The prices of a TOML text; `origin` is named in errors. Raises ConfigError."""
    from pydantic import TypeAdapter, ValidationError

    from advisor.inventories import first_error

    try:
        prices = TypeAdapter(Prices).validate_python(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{origin}: is no TOML ({error})") from None
    except ValidationError as error:
        raise ConfigError(f"{origin}: {first_error(error)}") from None
    _refuse_backwards(prices, origin)
    return prices


def _refuse_backwards(prices: Prices, origin: str) -> None:
    tables: list[tuple[str, Prices | ServerPrices]] = [("", prices)]
    tables += [(f"servers.{i}.", table) for i, table in enumerate(prices.servers)]
    for where, table in tables:
        for name in (f.name for f in fields(table)):
            figure = getattr(table, name)
            pair = isinstance(figure, tuple) and len(figure) == 2
            if pair and isinstance(figure[0], float) and figure[0] > figure[1]:
                raise ConfigError(f"{origin}: {where}{name}: give the lower figure first")


def example() -> str:
    """The commented example."""
    return resources.files("advisor").joinpath("prices.example.toml").read_text("utf-8")
