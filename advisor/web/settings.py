"""Whether and where the page is served."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from annotated_types import Ge, Le

from advisor.errors import ConfigError

_SHORTEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class PageSettings:
    """The local page. It only reads; bound elsewhere than on loopback it asks for a token."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    enabled: bool = field(default=True, metadata={"help": "whether the page is served"})
    address: str = field(default="127.0.0.1", metadata={"help": "the address that it is served on"})
    port: Annotated[int, Ge(1), Le(65535)] = field(
        default=8470, metadata={"help": "the port that it is served on"}
    )
    token_file: str = field(
        default="",
        metadata={
            "help": "a file with the token that visitors give as the password (the name is free);"
            " needed where the address is not loopback"
        },
    )

    def __post_init__(self) -> None:
        if not self.loopback and not self.token_file:
            raise ValueError(
                f"address {self.address!r} can be reached from other machines: name a token_file"
            )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the page."""
        try:
            return ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            return self.address == "localhost"

    def token(self) -> str | None:
        """The token; None where none is configured. Raises ConfigError for a file without one."""
        if not self.token_file:
            return None
        path = Path(self.token_file)
        try:
            text = path.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{path}: the page's token cannot be read ({error}); check [page] token_file"
            ) from None
        if len(text) < _SHORTEST_TOKEN or not text.isprintable() or " " in text:
            raise ConfigError(
                f"{path}: a token is one word of at least {_SHORTEST_TOKEN} characters"
                " (openssl rand -hex 16 makes one)"
            )
        return text
