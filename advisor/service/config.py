"""Settings of the service: where it keeps its state, when it reports, and to whom it speaks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_STRICT = {"extra": "forbid"}


def _help(text: str) -> dict[str, str]:
    return {"help": text}


def _zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"timezone: no time zone is called {name!r}, such as Europe/Madrid") from (
            None
        )


def _hour(hour: int) -> None:
    if not 0 <= hour <= 23:
        raise ValueError("hour: expected 0 to 23")


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The service (talla-advisor serve)."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    state: str = field(
        default="/var/lib/talla-advisor/advisor.db",
        metadata=_help("the advisor's own database: deliveries, snoozes, labels, stamps"),
    )
    poll_seconds: float = field(
        default=15.0, metadata=_help("how often alerts are looked for and delivered")
    )
    group_seconds: float = field(
        default=45.0, metadata=_help("alerts that come within this time go into one message")
    )
    silent_seconds: float = field(
        default=600.0, metadata=_help("a host that sends nothing for so long is told as silent")
    )
    keep_days: float = field(
        default=90.0, metadata=_help("how long delivered alerts are kept in the state")
    )

    def __post_init__(self) -> None:
        if self.poll_seconds < 1 or self.group_seconds < 0 or self.silent_seconds < 60:
            raise ValueError(
                "service: expected poll_seconds >= 1, group_seconds >= 0, silent_seconds >= 60"
            )


@dataclass(frozen=True, slots=True)
class InfluxReading:
    """InfluxDB, from which a fleet's alerts and history are read. It is on where `url` is set."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    url: str = field(default="", metadata=_help("http:// or https:// address; empty: not used"))
    database: str = field(
        default="talla", metadata=_help("database (1.x) or bucket (2.x, 3.x) of the agents")
    )
    database_5m: str = field(
        default="", metadata=_help("that of the 5-minute windows, where it is another")
    )
    token_file: str = field(
        default="", metadata=_help("file that holds the token, or USER:PASSWORD for 1.x")
    )
    ca_file: str = field(default="", metadata=_help("certificates (PEM) of a private authority"))
    timeout_seconds: float = field(default=10.0, metadata=_help("how long an answer may take"))


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """The weekly report. One that was missed is made up once."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    enabled: bool = field(default=True, metadata=_help("false: no report by itself"))
    day: Day = field(default="mon", metadata=_help("day of the week: mon to sun"))
    hour: int = field(default=7, metadata=_help("hour of the day, 0 to 23"))
    timezone: str = field(default="UTC", metadata=_help("time zone, such as Europe/Madrid"))
    folder: str = field(
        default="/var/lib/talla-advisor/reports", metadata=_help("where reports are kept")
    )
    keep: int = field(default=52, metadata=_help("how many reports are kept"))

    def __post_init__(self) -> None:
        _zone(self.timezone)
        _hour(self.hour)
        if self.keep < 1:
            raise ValueError("keep: expected at least 1")


@dataclass(frozen=True, slots=True)
class DigestSettings:
    """The daily digest of what is not urgent, for channels with `digest = true`."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    hour: int = field(default=8, metadata=_help("hour of the day, 0 to 23"))
    timezone: str = field(default="UTC", metadata=_help("time zone, such as Europe/Madrid"))

    def __post_init__(self) -> None:
        _zone(self.timezone)
        _hour(self.hour)


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """One way to people. Patterns (`*` stands for anything) choose what it is given."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    name: str = field(metadata=_help("its name, for notify --test"))
    kind: Literal["apprise", "mail", "alertmanager"] = field(
        metadata=_help("apprise (chat, push, webhooks), mail or alertmanager")
    )
    url: str = field(
        default="",
        metadata=_help(
            "apprise: any Apprise URL; mail: smtp://HOST:25, smtp+starttls://HOST:587 or"
            " smtps://HOST:465; alertmanager: http://HOST:9093"
        ),
    )
    url_file: str = field(
        default="", metadata=_help("file that holds the URL, since Apprise URLs hold secrets")
    )
    username: str = field(default="", metadata=_help("mail: user; alertmanager: basic auth"))
    password_file: str = field(default="", metadata=_help("file that holds the password"))
    ca_file: str = field(default="", metadata=_help("certificates (PEM) of a private authority"))
    sender: str = field(default="", metadata=_help("mail: the From address"))
    to: tuple[str, ...] = field(default=(), metadata=_help("mail: the To addresses"))
    to_owners: bool = field(
        default=False, metadata=_help("mail: each owner of [owners] gets what concerns them")
    )
    severity: Literal["info", "warning", "critical"] = field(
        default="warning", metadata=_help("told at once from this on; below it in the digest")
    )
    digest: bool = field(default=False, metadata=_help("whether it gets the daily digest"))
    reports: bool = field(default=False, metadata=_help("whether it gets the weekly report"))
    hosts: tuple[str, ...] = field(default=(), metadata=_help("hosts; empty: all"))
    rules: tuple[str, ...] = field(default=(), metadata=_help("rules; empty: all"))
    owners: tuple[str, ...] = field(
        default=(), metadata=_help("owners of the job (unit or user); empty: all")
    )
    timeout_seconds: float = field(default=10.0, metadata=_help("how long an answer may take"))

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name or "#" in self.name:
            raise ValueError("name: expected a text without / and #")
        if bool(self.url) == bool(self.url_file):
            raise ValueError("url: expected either url or url_file")
        if self.kind == "mail":
            schemes = ("smtp", "smtps", "smtp+starttls")
            if self.url and urlsplit(self.url).scheme not in schemes:
                raise ValueError(f"url: expected one of {', '.join(s + '://' for s in schemes)}")
            if not self.sender or not (self.to or self.to_owners):
                raise ValueError("sender: mail needs sender, and to or to_owners")
        web = not self.url or urlsplit(self.url).scheme in ("http", "https")
        if self.kind == "alertmanager" and not web:
            raise ValueError("url: expected http:// or https://")
        if not 1 <= self.timeout_seconds <= 300:
            raise ValueError("timeout_seconds: expected 1 to 300")


__all__ = [
    "DAYS",
    "ChannelSettings",
    "DigestSettings",
    "InfluxReading",
    "ReportSettings",
    "ServiceSettings",
]
