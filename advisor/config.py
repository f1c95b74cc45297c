"""advisor.toml: what the advisor reads, in which language it speaks, over which periods."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args, get_type_hints

from advisor.errors import ConfigError, ConfigUnreadable
from advisor.period import parse_duration
from advisor.service.config import (
    ChannelSettings,
    DigestSettings,
    InfluxReading,
    ReportSettings,
    ServiceSettings,
)
from advisor.sizing_config import SizingSettings
from advisor.web.settings import PageSettings

DEFAULT_PATH = Path("/etc/talla/advisor.toml")


def _help(text: str) -> dict[str, str]:
    return {"help": text}


@dataclass(frozen=True, slots=True)
class Periods:
    """The periods that commands tell and size, where the command line does not say."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    since: str = field(
        default="7d", metadata=_help("the period that hours, phases and the report tell")
    )
    look_back: str = field(default="28d", metadata=_help("the period that findings rest on"))

    def __post_init__(self) -> None:
        for name in ("since", "look_back"):
            try:
                parse_duration(getattr(self, name))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of the advisor."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    language: Literal["en", "es"] = field(
        default="en", metadata=_help("language of reports: en or es")
    )
    stores: tuple[str, ...] = field(
        default=(), metadata=_help("stores that are read where --store is not given")
    )
    prices: str = field(
        default="",
        metadata=_help("file of your prices; without one, savings are GPU-hours and kWh alone"),
    )
    periods: Periods = field(default_factory=Periods)
    sizing: SizingSettings = field(default_factory=SizingSettings)
    influx: InfluxReading = field(default_factory=InfluxReading)
    service: ServiceSettings = field(default_factory=ServiceSettings)
    report: ReportSettings = field(default_factory=ReportSettings)
    digest: DigestSettings = field(default_factory=DigestSettings)
    page: PageSettings = field(default_factory=PageSettings)
    owners: dict[str, str] = field(
        default_factory=dict,
        metadata=_help('mail addresses of owners (unit or user): "ana" = "ana@example.org"'),
    )
    channels: tuple[ChannelSettings, ...] = field(
        default=(), metadata=_help("to whom alerts and reports go, a table each")
    )

    def __post_init__(self) -> None:
        names = [channel.name for channel in self.channels]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"channels: two are called {min(twice)!r}")


def load(path: Path | None = None) -> Settings:
    """The settings of `path`; of DEFAULT_PATH, if it is there, or the defaults where it is None.

    Raises ConfigError naming the file, the key and what is expected.
    """
    named, path = path is not None, path or DEFAULT_PATH
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        if named:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
        return Settings()
    except PermissionError:
        raise ConfigUnreadable(
            f"{path}: may not be read by this user; run it as one who may"
            " (sudo -u talla-advisor talla-advisor ...), or name another file with --config"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is no TOML ({error})") from None
    from pydantic import TypeAdapter, ValidationError

    from advisor.inventories import first_error

    try:
        return TypeAdapter(Settings).validate_python(data)
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_error(error)}") from None


def default_text() -> str:
    """The commented default configuration, generated from the dataclasses."""
    head = "# advisor.toml: every key with its default.\n"
    return head + "\n".join((*_lines(Settings(), ""), *_examples())) + "\n"


def _examples() -> Iterator[str]:
    """What has no default, as comments."""
    helps = {f.name: f.metadata["help"] for f in fields(Settings) if "help" in f.metadata}
    yield f'\n# {helps["owners"]}\n# [owners]\n# ana = "ana@example.org"'
    yield f"\n# {helps['channels']}\n# [[channels]]"
    shown = {"name": "chat", "kind": "apprise", "url_file": "/etc/talla/chat-url", "digest": True}
    for f in fields(ChannelSettings):
        default = () if f.default is MISSING else f.default
        yield f"#   {f.metadata['help']}"
        yield f"# {f.name} = {json.dumps(shown.get(f.name, default))}"


def _lines(settings: Any, table: str) -> Iterator[str]:
    tables: list[tuple[str, Any]] = []
    hints = get_type_hints(type(settings))
    for f in fields(settings):
        value = getattr(settings, f.name)
        if f.name in ("owners", "channels"):
            continue
        if hasattr(value, "__dataclass_fields__"):
            tables.append((f.name, value))
            continue
        choices = get_args(hints[f.name]) if "Literal" in str(hints[f.name]) else ()
        told = f" ({', '.join(map(str, choices))})" if choices and "help" not in f.metadata else ""
        yield f"\n# {f.metadata.get('help', f.name)}{told}"
        yield f"{f.name} = {json.dumps(value)}"
    for name, value in tables:
        yield f"\n# {(type(value).__doc__ or '').strip().splitlines()[0]}"
        yield f"[{table}{name}]"
        yield from _lines(value, f"{table}{name}.")
