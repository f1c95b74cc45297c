"""The quantities that documented rules speak of, read from a case.

Each returns None where the server does not tell; a rule then abstains. A new quantity is one
function here and its name in a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from advisor.phase import Phase
from advisor.sizing.case import Card, Case
from telemetry.inventory import BlockDevice, data_mount

NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "glusterfs", "ceph"})

# A marketed terabyte or x16 link is compared with what the machine reports; see Rule.tolerance.


def gpu_count(case: Case) -> float | None:
    """Cards in the server."""
    return float(len(case.cards)) if case.cards else None


def job_gpus(case: Case) -> float | None:
    """Cards that the largest job uses together."""
    most = max((len(d.gpus) for d in case.demands), default=case.gpus_of_one_model or 0)
    return float(most) or None


def physical_cores_per_gpu(case: Case) -> float | None:
    """Physical cores for each card."""
    cpu = case.inventory.cpu
    if cpu is None or cpu.physical_cores is None or not case.cards:
        return None
    return cpu.physical_cores / len(case.cards)


def sockets(case: Case) -> float | None:
    """Processor sockets."""
    cpu = case.inventory.cpu
    return None if cpu is None or cpu.sockets is None else float(cpu.sockets)


def host_memory_bytes(case: Case) -> float | None:
    """RAM that the kernel can use."""
    memory = case.inventory.memory_bytes
    return None if memory is None else float(memory)


def ram_per_vram_ratio(case: Case) -> float | None:
    """RAM over the memory of all cards; meaningless where both are one memory."""
    memory, vram = case.inventory.memory_bytes, case.total_vram_bytes
    if memory is None or not vram or any(c.model and c.model.unified_memory for c in case.cards):
        return None
    return memory / vram


def _used(case: Case) -> tuple[Card, ...]:
    """The cards on which language models and training were seen; all where nothing was."""
    used = {uuid for d in case.demands if d.phase is not Phase.LIGHT_INFERENCE for uuid in d.gpus}
    return tuple(card for card in case.cards if card.info.uuid in used) or case.cards


def _together(case: Case) -> tuple[Card, ...]:
    """The cards of jobs that use several; all where no job was seen."""
    used = {uuid for d in case.demands if len(d.gpus) > 1 for uuid in d.gpus}
    return tuple(card for card in case.cards if card.info.uuid in used) or case.cards


def smallest_vram_bytes(case: Case) -> float | None:
    """Memory of the smallest card that language models or training use."""
    sizes = [card.memory_bytes for card in _used(case)]
    known = [size for size in sizes if size is not None]
    return min(known) if known and len(known) == len(sizes) else None


def compute_capability(case: Case) -> float | None:
    """Compute capability of the oldest card in use by language models or training (8.6)."""
    values = [_capability(card) for card in _used(case)]
    known = [value for value in values if value is not None]
    return min(known) if known and len(known) == len(values) else None


def _capability(card: Card) -> float | None:
    if card.info.compute_capability is not None:
        try:
            return float(card.info.compute_capability)
        except ValueError:
            return None
    if card.model is None or card.model.compute_capability is None:
        return None
    major, minor = card.model.compute_capability
    return float(f"{major}.{minor}")


def pcie_link_ratio(case: Case) -> float | None:
    """The worst card's link (generation's rate times lanes) over the best that it could have.

    The best is the lower of PCIe 5 and the card's own generation, at the card's own width, at
    most 16. A generation doubles the rate of the one before.
    """
    ratios = []
    for card in case.cards:
        link = card.info.pcie
        if link is None or link.generation is None or link.width is None:
            return None
        catalogued = card.model.pcie_generation if card.model else None
        best_generation = min(5, link.max_generation or catalogued or 5)
        best_width = min(16, link.max_width or 16)
        now = 2.0 ** min(link.generation, best_generation) * min(link.width, best_width)
        ratios.append(now / (2.0**best_generation * best_width))
    return min(ratios, default=None)


def _nvlink_cards(case: Case) -> list[Card] | None:
    """Cards that could have NVLink; None where that is unknown of one."""
    cards = _together(case)
    if any(card.model is None for card in cards):
        return None
    return [card for card in cards if card.model is not None and card.model.has_nvlink]


def nvlink_present(case: Case) -> float | None:
    """1 if every card that can is linked to a peer, 0 if one is not."""
    cards = _nvlink_cards(case)
    if not cards or len(case.cards) < 2 or any(c.info.nvlink_peers is None for c in cards):
        return None
    return 1.0 if all(card.info.nvlink_peers for card in cards) else 0.0


def nvlink_bytes_per_second(case: Case) -> float | None:
    """What the cards' NVLink carries in both directions, 0 where a card is not linked."""
    present, cards = nvlink_present(case), _nvlink_cards(case)
    if present is None or cards is None:
        return None
    return min(c.model.nvlink_bytes_per_second or 0.0 for c in cards if c.model) * present


def local_nvme_bytes(case: Case) -> float | None:
    """Local NVMe of the server; unknown where a device does not tell its kind."""
    devices = case.inventory.block_devices
    if not devices or any(d.kind is None or d.size_bytes is None for d in devices):
        return None
    return float(sum(d.size_bytes or 0 for d in devices if d.kind == "nvme"))


def data_on_local_nvme(case: Case) -> float | None:
    """1 if every data path lies on local NVMe, 0 if one does not."""
    kinds = [_carrier(case, path) for path in case.inventory.data_paths]
    if not kinds or None in kinds:
        return None
    return 1.0 if all(kind == "nvme" for kind in kinds) else 0.0


def data_on_fuse(case: Case) -> float | None:
    """1 if a data path lies on a FUSE mount; else the rule against it has nothing to say."""
    kinds = [_carrier(case, path) for path in case.inventory.data_paths]
    return 1.0 if "fuse" in kinds else None


def data_link_bits_per_second(case: Case) -> float | None:
    """Rate of the fastest link that is up, where a data path lies on a network file system."""
    if not any(_carrier(case, path) == "network" for path in case.inventory.data_paths):
        return None
    return fastest_nic_bits_per_second(case)


def data_devices(case: Case) -> list[BlockDevice]:
    """The block devices that data paths lie on."""
    mounts = (data_mount(case.inventory, path) for path in case.inventory.data_paths)
    names = {mount.device for mount in mounts if mount is not None}
    return [device for device in case.inventory.block_devices if device.name in names]


def _carrier(case: Case, path: str) -> str | None:
    """What carries a path: network, fuse, nvme, ssd, hdd; None where unknown."""
    mount = data_mount(case.inventory, path)
    if mount is None:
        return None
    if mount.fstype in NETWORK_FILE_SYSTEMS:
        return "network"
    if mount.fstype.startswith("fuse"):
        return "fuse"
    device = next((d for d in case.inventory.block_devices if d.name == mount.device), None)
    return None if device is None else device.kind


def fastest_nic_bits_per_second(case: Case) -> float | None:
    """Rate of the fastest link that is up; None where a link does not tell its own."""
    links = [n for n in case.inventory.nics if n.state in (None, "up")]
    if not links or any(n.speed_bits_per_second is None for n in links):
        return None
    return float(max(n.speed_bits_per_second or 0 for n in links))


def power_feed_ratio(case: Case) -> float | None:
    """The declared feed over the sum of the cards' power limits."""
    feed = case.inventory.power_feed_watts
    limits = [
        card.info.power_limit_watts or (card.model.power_watts if card.model else None)
        for card in case.cards
    ]
    known = [limit for limit in limits if limit is not None]
    if feed is None or not known or len(known) != len(limits):
        return None
    return feed / sum(known)


QUANTITIES: Mapping[str, Callable[[Case], float | None]] = {
    function.__name__: function
    for function in (
        gpu_count,
        job_gpus,
        physical_cores_per_gpu,
        sockets,
        host_memory_bytes,
        ram_per_vram_ratio,
        smallest_vram_bytes,
        compute_capability,
        pcie_link_ratio,
        nvlink_present,
        nvlink_bytes_per_second,
        local_nvme_bytes,
        data_on_local_nvme,
        data_on_fuse,
        data_link_bits_per_second,
        fastest_nic_bits_per_second,
        power_feed_ratio,
    )
}
