"""Chat, push and webhooks through Apprise, one URL a channel."""

from __future__ import annotations

import logging
import threading
from typing import Any

from advisor.channels.message import Message, NotDelivered, secret
from advisor.service.config import ChannelSettings
from telemetry.event import Severity

_TYPES = {Severity.INFO: "info", Severity.WARNING: "warning", Severity.CRITICAL: "failure"}
_LOG = logging.getLogger("apprise")


class _Last(logging.Filter):
    """Apprise answers only yes or no; why is in its log, which goes no further from this thread:
    whoever tries again and again tells it once."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()
        self.words = ""

    def filter(self, record: logging.LogRecord) -> bool:
        mine = record.thread == self._thread
        if mine and record.levelno >= logging.WARNING:
            self.words = record.getMessage()
        return not mine


class AppriseChannel:
    """Any service that Apprise knows (https://github.com/caronc/apprise/wiki)."""

    renew_seconds: float | None = None

    def __init__(self, settings: ChannelSettings) -> None:
        self._settings = settings

    def send(self, message: Message) -> None:
        import apprise

        url = self._settings.url or secret(self._settings.url_file, "address of the channel")
        last = _Last()
        _LOG.addFilter(last)
        try:
            service: Any = apprise.Apprise.instantiate(url)
            if service is None:
                raise NotDelivered("no service that Apprise knows has such an address")
            # Connecting and answering each take at most so long; Apprise's own defaults are 4 s.
            timeout = self._settings.timeout_seconds
            service.socket_connect_timeout = service.socket_read_timeout = timeout
            sent = service.notify(
                title=message.title,
                body=message.text,
                notify_type=_TYPES[message.severity],
                body_format=apprise.NotifyFormat.TEXT,
            )
        except (OSError, TypeError, ValueError) as error:
            raise NotDelivered(f"{type(error).__name__}") from None
        finally:
            _LOG.removeFilter(last)
        if not sent:
            raise NotDelivered(last.words or "the service did not confirm it")


__all__ = ["AppriseChannel"]
