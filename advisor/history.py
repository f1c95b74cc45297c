"""The only reader of windows: the local stores now, InfluxDB beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from telemetry.event import Event
from telemetry.inventory import Inventory
from telemetry.window import Frame


class History(Protocol):
    """The 5-minute windows, inventories and events of any number of hosts."""

    def hosts(self) -> list[str]:
        """Every host, by name."""

    def span(self, host: str) -> tuple[int, int] | None:
        """First second and end of the host's 5-minute windows, None where there are none."""

    def frames(
        self,
        host: str,
        measurement: str,
        *,
        since: float,
        until: float,
        fields: Sequence[str],
        texts: bool = False,
    ) -> list[Frame]:
        """5-minute windows that begin in [since, until), a frame a subject."""

    def inventory(self, host: str) -> Inventory | None:
        """The newest inventory of a host, None where none was kept."""

    def events(self, host: str, *, since: float, until: float) -> list[Event]:
        """The host's events, in order."""
