"""What is sent, in every form that a channel may want."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from telemetry.event import Event, Severity


class NotDelivered(Exception):
    """The message was not confirmed; it is sent again later. One line, without secrets."""


@dataclass(frozen=True, slots=True)
class Message:
    """A title, the text, the same as HTML, and the alerts that it is about.

    `images` are PNG pictures by the name that the HTML has in `cid:NAME`; `files` are attached by
    channels that can.
    """

    title: str
    text: str
    html: str
    severity: Severity = Severity.INFO
    alerts: tuple[Event, ...] = ()
    images: Mapping[str, bytes] = field(default_factory=dict)
    files: tuple[Path, ...] = ()


class Channel(Protocol):
    """One way to people."""

    renew_seconds: float | None
    """How often alerts that stand must be told again (Alertmanager forgets); None: once."""

    def send(self, message: Message) -> None:
        """Returns once the other side has confirmed it. Raises NotDelivered."""


def secret(path: str, what: str) -> str:
    """The content of a secret's file; a name without / is a systemd credential."""
    place = Path(path)
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if "/" not in path and folder:
        place = Path(folder) / path
    try:
        text = place.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or "no UTF-8 text"
        raise NotDelivered(f"{place}: the {what} cannot be read ({words})") from None
    if not text:
        raise NotDelivered(f"{place}: the {what} is empty")
    return text


__all__ = ["Channel", "Message", "NotDelivered", "secret"]
