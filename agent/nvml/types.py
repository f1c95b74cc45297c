"""What the NVML client tells the rest of the agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from telemetry.inventory import GpuInfo, MigInstance, Pcie


@dataclass(slots=True)  # frozen would take thrice as long to make
class GpuReading:
    """One GPU at one tick.

    `values` holds the metrics of `telemetry.metrics.GPU` that it gave, in their units, and
    `unavailable` the reasons of those that it did not give. With `error` there are no values.
    `uuid` is None for a GPU that has answered nothing but errors since the agent began, `index`
    for one that the driver no longer lists.
    """

    uuid: str | None
    index: int | None
    name: str | None
    values: Mapping[str, float]
    texts: Mapping[str, str]
    unavailable: Mapping[str, str]
    error: str | None = None
    asleep: bool = False
    """Whether `error` only says that it sleeps, which is no fault."""


@dataclass(frozen=True, slots=True)
class NvmlTick:
    """All GPUs at one tick, by index.

    `missing` says why no reading is here: no driver, a mismatch, released, or no answer yet
    (then `waiting`: the driver is slow, and the next tick may have it).
    """

    time_monotonic: float
    gpus: tuple[GpuReading, ...]
    missing: str | None = None
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """One process on one GPU. A process that both computes and draws is there twice.

    `memory_bytes` is None where the driver does not tell it; `sm_ratio` is the share of the
    multiprocessors over some seconds, None where the driver has no sample of it.
    """

    gpu_uuid: str
    pid: int
    memory_bytes: int | None
    sm_ratio: float | None
    kind: str


class NvmlEventKind(StrEnum):
    """What happened to the driver, its library, or a GPU."""

    DRIVER_MISSING = "driver_missing"
    DRIVER_FOUND = "driver_found"
    DRIVER_MISMATCH = "driver_mismatch"
    CHILD_CRASHED = "nvml_crashed"
    CHILD_HUNG = "nvml_hung"
    GPU_LOST = "gpu_lost"
    GPU_RETURNED = "gpu_returned"
    GPU_COUNT_CHANGED = "gpu_count_changed"
    XID = "xid"


@dataclass(frozen=True, slots=True)
class NvmlEvent:
    """Something that happened at one instant; `text` is for people."""

    kind: NvmlEventKind
    time_monotonic: float
    text: str
    gpu_uuid: str | None = None


def gpu_process(uuid: str, entry: Mapping[str, Any]) -> GpuProcess:
    """A process as the child tells it, of the card or of an instance of it."""
    return GpuProcess(
        f"{uuid}/{entry['instance']}" if "instance" in entry else uuid,
        entry["pid"],
        entry.get("memory_bytes"),
        entry.get("sm_ratio"),
        entry["kind"],
    )


def mig_readings(card: GpuReading, rows: Iterable[Mapping[str, Any]]) -> list[GpuReading]:
    """The instances of a card as readings of their own, under `UUID/GI/CI`."""
    return [
        GpuReading(
            uuid=f"{card.uuid}/{row['gi']}/{row['ci']}",
            index=card.index,
            name=f"{card.name} MIG {row['profile']}" if "profile" in row else card.name,
            values=row["values"],
            texts={},
            unavailable=row["unavailable"],
        )
        for row in rows
    ]


def gpu_info(
    identity: Mapping[str, Any], facts: Mapping[str, Any], best: Mapping[str, float]
) -> GpuInfo:
    """The inventory's row of a GPU from what the child told of it.

    `best` holds the last or best values seen of metrics. NVML gives the card's own generation
    and the best that card and slot allow together: where the second is lower, it is the slot's.
    """
    card, both = facts.get("pcie_card_max_generation"), facts.get("pcie_max_generation")
    peers = facts.get("nvlink_peers")
    return GpuInfo(
        uuid=identity["uuid"],
        index=identity.get("index"),
        name=identity.get("name"),
        memory_bytes=_whole(best.get("memory_total_bytes")),
        power_limit_watts=best.get("power_limit_watts"),
        compute_capability=facts.get("compute_capability"),
        pci_device_id=facts.get("pci_device_id"),
        pci_bus_id=facts.get("pci_bus_id"),
        pcie=Pcie(
            generation=_whole(best.get("pcie_link_generation")),
            width=_whole(best.get("pcie_link_width")),
            max_generation=card or both,
            max_width=facts.get("pcie_max_width"),
            slot_max_generation=both if card and both and both < card else None,
        ),
        nvlink_links=facts.get("nvlink_links"),
        virtualization=facts.get("virtualization"),
        memory_kind=facts.get("memory_kind"),
        nvlink_peers=None if peers is None else tuple(peers),
        mig=tuple(MigInstance(**instance) for instance in facts.get("mig", ())),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def remember_best(best: dict[str, float], values: Mapping[str, float]) -> None:
    """Keeps what the inventory tells of a GPU's metrics: the best link, the last size and limit."""
    for metric in ("pcie_link_generation", "pcie_link_width"):
        if metric in values:
            best[metric] = max(values[metric], best.get(metric, 0))
    for metric in ("memory_total_bytes", "power_limit_watts"):
        if metric in values:
            best[metric] = values[metric]
