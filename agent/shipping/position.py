"""How far shipping came in a store."""

from __future__ import annotations

from dataclasses import dataclass

from telemetry.store import StoreReader

CURSORS = {
    "windows": "ship",
    "events": "ship_events",
    "inventories": "ship_inventories",
    "live_from": "ship_live_from",
    "live": "ship_live",
}
"""The parts of a position and the store's cursors that keep them."""


@dataclass(frozen=True, slots=True)
class Position:
    """The last window, event and inventory that arrived, in the order of commit.

    While a backlog is caught up with, the windows after `live_from` up to `live` arrived too;
    else both are 0. `store` is the identity of the store that this is a position in.
    """

    windows: int = 0
    events: int = 0
    inventories: int = 0
    live_from: int = 0
    live: int = 0
    store: str = ""


def read_position(store: StoreReader) -> Position:
    """What the store itself says."""
    found = {part: store.cursor(name) for part, name in CURSORS.items()}
    return Position(**found, store=store.identity())


__all__ = ["CURSORS", "Position", "read_position"]
