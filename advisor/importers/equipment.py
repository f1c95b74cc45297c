"""What a log tells of the server that it is from."""

from __future__ import annotations

from advisor.importers.recording import Facts, Place, Recording, Track
from advisor.inventories import imported_uuid, index_of
from telemetry.inventory import BlockDevice, GpuInfo, Inventory, Mount, Nic, Pcie


def inventory_of(recording: Recording, gpu_model: str | None, gpus: int | None) -> Inventory:
    """The inventory as far as the log tells: cards, memory, links, the disk, mount and NIC named.

    `gpus` adds cards that the log does not show.
    """
    cards = [
        _card(uuid, track, recording.facts.get(uuid, Facts()), gpu_model)
        for uuid, track in recording.tracks.items()
        if uuid is not None
    ]
    cards.sort(key=lambda c: (c.index is None, c.index, c.uuid))
    shown = {c.uuid for c in cards}
    for index in range(gpus or 0):
        uuid = imported_uuid(recording.host, index)
        if len(cards) < (gpus or 0) and uuid not in shown:
            cards.append(GpuInfo(uuid, index, gpu_model))
    memory = _largest(recording, ("host", "memory_total_bytes"))
    return Inventory(
        host=recording.host,
        memory_bytes=None if memory is None else int(memory),
        gpus=tuple(cards),
        block_devices=tuple(
            BlockDevice(name, _word(recording, ("disk", "kind")))
            for name in _words(recording, ("disk", "device"))
        ),
        mounts=_mounts(recording),
        nics=tuple(
            Nic(
                name,
                _word(recording, ("nic", "kind")) or "ethernet",
                _whole(_largest(recording, ("nic", "speed_bits_per_second"))),
                _word(recording, ("nic", "state")),
            )
            for name in _words(recording, ("nic", "device"))
        ),
    )


def _card(uuid: str, track: Track, facts: Facts, told: str | None) -> GpuInfo:
    memory = track.largest(("gpu", "memory_total_bytes"))
    pcie = Pcie(
        generation=_whole(track.largest(("gpu", "pcie_link_generation"))),
        width=_whole(track.largest(("gpu", "pcie_link_width"))),
        max_generation=facts.max_generation,
        max_width=facts.max_width,
        slot_max_generation=facts.slot_max_generation,
    )
    return GpuInfo(
        uuid=uuid,
        index=facts.index if facts.index is not None else index_of(uuid),
        name=facts.model or told,
        memory_bytes=_whole(memory),
        power_limit_watts=track.largest(("gpu", "power_limit_watts")),
        compute_capability=facts.compute_capability,
        pci_bus_id=facts.bus_id,
        pcie=None if pcie == Pcie() else pcie,
    )


def _mounts(recording: Recording) -> tuple[Mount, ...]:
    """Each mount with its file system; one of which no type is known is no use to a rule."""
    found: dict[str, Mount] = {}
    for track in recording.tracks.values():
        paths, types = track.texts.get(("mount", "mount")), track.texts.get(("mount", "fstype"))
        sources = track.texts.get(("mount", "source"))
        if types is None:
            continue
        for row in range(len(track)):
            path = (paths.get(row) if paths is not None else None) or "imported"
            kind = types.get(row)
            if kind is not None and path not in found:
                source = sources.get(row) if sources is not None else None
                found[path] = Mount(path, kind, source or "unknown")
    return tuple(found.values())


def _largest(recording: Recording, place: Place) -> float | None:
    found = [v for t in recording.tracks.values() if (v := t.largest(place)) is not None]
    return max(found, default=None)


def _words(recording: Recording, place: Place) -> list[str]:
    words: dict[str, None] = {}
    for track in recording.tracks.values():
        column = track.texts.get(place)
        if column is not None:
            words.update((w, None) for i in range(len(track)) if (w := column.get(i)) is not None)
    return list(words)


def _word(recording: Recording, place: Place) -> str | None:
    words = _words(recording, place)
    return words[0] if len(words) == 1 else None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
