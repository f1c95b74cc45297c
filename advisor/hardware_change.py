"""When a server's hardware last changed: what was seen before was another server.

Only what sizing compares counts: cards and their slices, RAM, cores, where the data lie, and the
fastest link. What is unknown of one of two inventories is no change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from advisor.message import Message, say
from advisor.sizing.thresholds import Thresholds
from telemetry.inventory import Inventory, data_mount


@dataclass(frozen=True, slots=True)
class HardwareChange:
    """The last change within a period: when it was seen (Unix seconds) and of what."""

    time: float
    what: tuple[Message, ...]


def last_change(
    inventories: Sequence[tuple[float, Inventory]], thresholds: Thresholds
) -> HardwareChange | None:
    """The last change among inventories in order of time, each with the time it holds from."""
    passing = thresholds.number("change", "passing_seconds")
    tolerance = thresholds.number("change", "tolerance_ratio")
    lasting = [
        entry
        for i, entry in enumerate(inventories)
        if i + 1 == len(inventories) or inventories[i + 1][0] - entry[0] >= passing
    ]
    for (_, before), (time, after) in zip(lasting[-2::-1], lasting[:0:-1], strict=True):
        what = tuple(
            name for name, read in _COMPARED if _differs(read(before), read(after), tolerance)
        )
        if what:
            return HardwareChange(time, what)
    return None


def _cards(inventory: Inventory) -> object:
    return {
        (gpu.uuid, tuple(sorted((part.profile or "") for part in gpu.mig)))
        for gpu in inventory.gpus
    } or None


def _ram(inventory: Inventory) -> object:
    return inventory.memory_bytes


def _cores(inventory: Inventory) -> object:
    return None if inventory.cpu is None else inventory.cpu.physical_cores


def _data(inventory: Inventory) -> object:
    devices = {device.name: device for device in inventory.block_devices}
    found = []
    for path in inventory.data_paths:
        mount = data_mount(inventory, path)
        if mount is None:
            return None
        device = devices.get(mount.device or "")
        disk = None if device is None else (device.kind, device.size_bytes)
        found.append((path, mount.fstype, mount.source if device is None else disk))
    return tuple(sorted(found, key=str)) or None


def _link(inventory: Inventory) -> object:
    return max((n.speed_bits_per_second or 0 for n in inventory.nics), default=0) or None


_COMPARED: tuple[tuple[Message, Callable[[Inventory], object]], ...] = (
    (say("GPUs"), _cards),
    (say("RAM"), _ram),
    (say("CPU"), _cores),
    (say("where the data lie"), _data),
    (say("Fastest network link"), _link),
)


def _differs(before: object, after: object, tolerance: float) -> bool:
    if before is None or after is None:
        return False
    if isinstance(before, int) and isinstance(after, int):
        return abs(after - before) > tolerance * max(before, after)
    return before != after
