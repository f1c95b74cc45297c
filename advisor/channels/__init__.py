"""Ways to people: one module a kind. A channel sends a message or raises `NotDelivered`."""

from __future__ import annotations

from advisor.channels.message import Channel, Message, NotDelivered
from advisor.service.config import ChannelSettings

__all__ = ["Channel", "Message", "NotDelivered", "channel_of"]


def channel_of(settings: ChannelSettings) -> Channel:
    """The channel that the settings describe; what it needs is imported only then."""
    if settings.kind == "mail":
        from advisor.channels.mail import Mail

        return Mail(settings)
    if settings.kind == "alertmanager":
        from advisor.channels.alertmanager import Alertmanager

        return Alertmanager(settings)
    from advisor.channels.apprise_ import AppriseChannel

    return AppriseChannel(settings)
