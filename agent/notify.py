"""Words to systemd: ready, status, watchdog (sd_notify(3)), by a datagram and no library."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import MutableMapping
from contextlib import suppress

_FEEDS = 6
"""Feeds of the watchdog within its time: each wakes the service manager."""


class Notifier:
    """Speaks to the service manager that started us; does nothing where there is none."""

    def __init__(self, environment: MutableMapping[str, str] | None = None) -> None:
        """Takes NOTIFY_SOCKET out of the environment, so that no child speaks in our name.

        WATCHDOG_USEC says how often the watchdog is to be fed; without it each word is sent.
        """
        given = os.environ if environment is None else environment
        address = given.pop("NOTIFY_SOCKET", "")
        patience = given.pop("WATCHDOG_USEC", "")
        self._fed_every = int(patience) / 1e6 / _FEEDS if patience.isdigit() else 0.0
        self._fed_at = -math.inf
        # A leading @ stands for the zero byte of Linux' abstract names.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = (
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            if address
            else None
        )
        self._status = ""

    def ready(self) -> None:
        """The daemon samples."""
        self._send("READY=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`; sent where it changed."""
        if text != self._status:
            self._status = text
            self._send("STATUS=" + text.replace("\n", " "))

    def watchdog(self) -> None:
        """Fresh data came in."""
        now = time.monotonic()
        if now - self._fed_at >= self._fed_every:
            self._fed_at = now
            self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """The daemon ends."""
        self._send("STOPPING=1")

    def close(self) -> None:
        """Lets go of the socket."""
        if self._socket is not None:
            self._socket.close()

    def _send(self, text: str) -> None:
        if self._socket is not None:
            with suppress(OSError):  # the manager may be away; that must not end the daemon
                self._socket.sendto(text.encode(), socket.MSG_DONTWAIT, self._address)
