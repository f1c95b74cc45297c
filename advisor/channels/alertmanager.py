"""Prometheus Alertmanager's API, version 2 (https://github.com/prometheus/alertmanager, openapi).

An alert is known by its labels, so that sending it twice changes nothing. One that is not renewed
counts as over after a while; those that stand are therefore told again.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import urllib3

from advisor.channels.message import Message, NotDelivered, secret
from advisor.service.config import ChannelSettings
from telemetry.bounded import ask
from telemetry.event import Event

_MOST_BYTES = 1 << 20
_RENEWED = 60.0
_LASTS = timedelta(minutes=10)
_SINCE = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d) UTC")


class Alertmanager:
    """One Alertmanager."""

    renew_seconds: float | None = _RENEWED

    def __init__(self, settings: ChannelSettings) -> None:
        self._settings = settings

    def send(self, message: Message) -> None:
        if not message.alerts:
            return  # a digest or a report: nothing for it
        settings = self._settings
        url = settings.url or secret(settings.url_file, "address of Alertmanager")
        headers = {"Content-Type": "application/json"}
        if settings.username:
            password = secret(settings.password_file, "password of Alertmanager")
            headers.update(
                urllib3.make_headers(basic_auth=f"{settings.username}:{password}").items()
            )
        body = json.dumps([alert_document(event) for event in message.alerts])
        with urllib3.PoolManager(ca_certs=settings.ca_file or None) as pool:
            try:
                status, answer = ask(
                    pool,
                    "POST",
                    f"{url.rstrip('/')}/api/v2/alerts",
                    body=body,
                    headers=headers,
                    seconds=settings.timeout_seconds,
                    most_bytes=_MOST_BYTES,
                )
            except urllib3.exceptions.HTTPError as error:
                raise NotDelivered(f"Alertmanager: {type(error).__name__}") from None
        if status != 200:
            words = answer.decode("utf-8", "backslashreplace")
            raise NotDelivered(f"Alertmanager: {status} {' '.join(words.split())[:200]}")


def alert_document(event: Event) -> dict[str, Any]:
    """The alert as the API wants it."""
    labels = {
        "alertname": event.rule or "talla",
        "host": event.host,
        "severity": event.severity.value,
        "subject": event.attributes.get("subject", ""),
        "gpu_uuid": event.gpu_uuid or "",
        "owner": event.attributes.get("owner", ""),
    }
    # Owner and severity may change between raise and clear, and labels are the identity.
    labels.pop("owner")
    annotations = {
        "summary": event.attributes.get("title", event.text),
        "description": event.text,
        "look": event.attributes.get("look", ""),
        "owner": event.attributes.get("owner", ""),
    }
    now = datetime.now(UTC)
    began = _began(event)
    ends = now + _LASTS if event.raised else datetime.fromtimestamp(event.time, UTC)
    return {
        "labels": {name: text for name, text in labels.items() if text},
        "annotations": {name: text for name, text in annotations.items() if text},
        "startsAt": began.isoformat(),
        "endsAt": max(ends, began).isoformat(),
    }


def _began(event: Event) -> datetime:
    found = _SINCE.fullmatch(event.attributes.get("since", ""))
    if found is None:
        return datetime.fromtimestamp(event.time, UTC)
    return datetime.fromisoformat(f"{found[1]}T{found[2]}:00+00:00")


__all__ = ["Alertmanager", "alert_document"]
