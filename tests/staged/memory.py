"""History in memory: simulated windows as the advisor reads them, without a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from telemetry.event import Event
from telemetry.inventory import Inventory
from telemetry.store import OwnerDay
from telemetry.window import Frame, Key, Window


class MemoryHistory:
    """The windows of one host. Every field is kept, whatever `fields` asks for."""

    def __init__(self, inventory: Inventory, windows: Iterable[Window]) -> None:
        self._inventory = inventory
        self._frames: dict[Key, Frame] = {}
        self._span: tuple[int, int] | None = None
        for window in windows:
            if window.tier == 300:
                self._add(window)

    def _add(self, window: Window) -> None:
        first = self._span[0] if self._span else window.start
        self._span = first, window.end
        for key, row in window.rows.items():
            frame = self._frames.setdefault(key, Frame(key))
            count = len(frame)
            frame.start.append(window.start)
            frame.seconds.append(window.seconds)
            frame.texts.append(row.texts)
            for name, value in row.values.items():
                column = frame.columns.get(name)
                if column is None:
                    column = frame.columns[name] = [None] * count
                column.extend([None] * (count - len(column)))
                column.append(value)
        for frame in self._frames.values():
            for column in frame.columns.values():
                column.extend([None] * (len(frame) - len(column)))

    def hosts(self) -> list[str]:
        return [self._inventory.host]

    def span(self, host: str) -> tuple[int, int] | None:
        return self._span

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
        return [self._frames[k] for k in sorted(self._frames) if k[0] == measurement]

    def inventory(self, host: str) -> Inventory | None:
        return self._inventory

    def inventories(
        self, host: str, *, since: float, until: float
    ) -> list[tuple[float, Inventory]]:
        return [(since, self._inventory)]

    def events(self, host: str, *, since: float, until: float) -> list[Event]:
        return []

    def owner_days(self, host: str, *, since: float, until: float) -> list[OwnerDay]:
        return []
