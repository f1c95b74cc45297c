"""The GPU catalogue: what is publicly known of each card, found by how NVML names it.

A card that is not in the catalogue is not guessed: `find_gpu` returns None and its facts stay
unknown. A fact that no public document confirmed is listed in `Gpu.unverified`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

GIGA = 1_000_000_000
TERA = 1_000_000_000_000
MEBI = 1 << 20

# ECC takes about 6 % of a GDDR card and vendors print GB or GiB, 7 % apart; a card that reports
# a total further away than this from its catalogue entry is another card, or a slice of one.
MEMORY_TOLERANCE = 0.12

Table = dict[str, object]

_MIG_SUFFIX = re.compile(r"\s+mig\s+\d+[cg]\.\S+$")  # "... MIG 1g.10gb"
_VGPU = re.compile(r"^(grid\s|.*-\d+[abcq]$)")  # "GRID A100D-80C", "A40-48Q": a slice of a card


@dataclass(frozen=True, slots=True)
class PciId:
    """A PCI device, and the board it sits on where the same chip serves several products."""

    device: int
    subsystem_vendor: int | None = None
    subsystem_device: int | None = None

    def __str__(self) -> str:
        parts = [self.device, self.subsystem_vendor, self.subsystem_device]
        return ":".join(f"{part:04x}" for part in parts if part is not None)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One product. Base units; a fact that is not known, or that the card lacks, is None.

    `memory_bytes` is the total that NVML reports where that was seen, else the printed gigabytes
    times 10^9, which no card falls below. `nvlink_bytes_per_second` is the sum of both directions
    and None means that the card has no NVLink; `dense_bf16_flops` is without sparsity.
    """

    name: str
    nvml_names: tuple[str, ...]
    aliases: tuple[str, ...]
    pci_ids: tuple[PciId, ...]
    ambiguous_name: bool
    memory_bytes: int
    nominal_memory_bytes: int
    memory_type: str
    unified_memory: bool
    bandwidth_bytes_per_second: float
    power_watts: float
    pcie_generation: int | None
    pcie_lanes: int
    nvlink_bytes_per_second: float | None
    nvlink_kind: str | None
    compute_capability: tuple[int, int] | None
    bf16: bool
    fp8: bool
    fp4: bool
    dense_bf16_flops: float | None
    form: str
    mig: bool  # can be cut into instances, where that is switched on
    source: str
    unverified: tuple[str, ...]

    @property
    def has_nvlink(self) -> bool:
        return self.nvlink_bytes_per_second is not None

    @property
    def verified(self) -> bool:
        return not self.unverified


@cache
def gpus() -> tuple[Gpu, ...]:
    """Every GPU of the catalogue, in the order of gpus.toml."""
    text = resources.files(__package__).joinpath("gpus.toml").read_text(encoding="utf-8")
    return tuple(_gpu(entry) for entry in tomllib.loads(text)["gpu"])


def find_gpu(
    name: str,
    memory_bytes: int | None = None,
    *,
    pci_device_id: int | None = None,
    pci_subsystem_id: int | None = None,
) -> Gpu | None:
    """The card behind an NVML name, or None where the catalogue cannot tell.

    PCI ids decide where they are given, as NVML packs them (device or subsystem in the upper 16
    bits, vendor in the lower). Then the name, with or without the vendor's prefix, in any case. A
    MIG instance is answered with the card that it is a part of; a vGPU is no card and is not
    found. `memory_bytes` tells boards of one name apart, and refuses a card whose memory is
    nowhere near that of the entry.
    """
    is_instance = bool(_MIG_SUFFIX.search(name.strip().casefold()))
    wanted = normalise_name(name)
    if _VGPU.match(wanted):
        return None
    found = _by_pci_id(pci_device_id, pci_subsystem_id)
    by_pci_id = bool(found)
    if not found:
        found = [gpu for gpu in gpus() if wanted in _names(gpu.nvml_names)]
    if not found:
        found = [gpu for gpu in gpus() if wanted in _names((gpu.name, *gpu.aliases))]
    if memory_bytes is not None and not is_instance:
        found = [gpu for gpu in found if gpu.unified_memory or _near(gpu, memory_bytes)]
    if len(found) != 1:
        return None
    if found[0].ambiguous_name and not by_pci_id and memory_bytes is None:
        return None
    return found[0]


def suggest_gpus(name: str) -> tuple[Gpu, ...]:
    """Cards that a person may have meant by a short name, such as "H100" or "a100 80"."""
    words = normalise_name(name).split()
    return tuple(
        gpu for gpu in gpus() if words and all(word in normalise_name(gpu.name) for word in words)
    )


def normalise_name(name: str) -> str:
    """An NVML name without vendor, MIG suffix and case ("NVIDIA A30 MIG 1g.6gb" -> "a30").

    Drivers before about R470 left the vendor out of the names of GeForce and data-centre cards.
    """
    text = " ".join(name.split()).casefold()
    text = _MIG_SUFFIX.sub("", text)
    for vendor in ("nvidia ", "amd "):
        text = text.removeprefix(vendor)
    return text.removeprefix("tesla ")


def _names(names: Iterable[str]) -> set[str]:
    return {normalise_name(name) for name in names}


def _near(gpu: Gpu, memory_bytes: int) -> bool:
    known = (gpu.memory_bytes, gpu.nominal_memory_bytes)
    return any(abs(memory_bytes - size) <= MEMORY_TOLERANCE * size for size in known)


def _by_pci_id(device_id: int | None, subsystem_id: int | None) -> list[Gpu]:
    if device_id is None:
        return []
    device = device_id >> 16 if device_id > 0xFFFF else device_id
    candidates = [(gpu, pci) for gpu in gpus() for pci in gpu.pci_ids if pci.device == device]
    if subsystem_id is not None:
        wanted = (subsystem_id & 0xFFFF, subsystem_id >> 16)
        exact = [
            gpu for gpu, pci in candidates if (pci.subsystem_vendor, pci.subsystem_device) == wanted
        ]
        if exact:
            return list(dict.fromkeys(exact))
    return list(dict.fromkeys(gpu for gpu, pci in candidates if pci.subsystem_vendor is None))


def _gpu(entry: Table) -> Gpu:
    memory, compute = _table(entry, "memory"), _table(entry, "compute")
    links, board = _table(entry, "links"), _table(entry, "board")
    nominal = int(_required(memory, "gigabytes") * GIGA)
    seen = _number(memory, "mebibytes_nvml", MEBI)
    capability, kind = compute.get("capability"), links.get("nvlink_kind")
    generation, formats = _number(links, "pcie_generation"), _strings(compute, "formats")
    return Gpu(
        name=str(entry["name"]),
        nvml_names=_strings(entry, "nvml_names"),
        aliases=_strings(entry, "aliases"),
        pci_ids=tuple(_pci_id(text) for text in _strings(entry, "pci_ids")),
        ambiguous_name=bool(entry.get("ambiguous_name", False)),
        memory_bytes=int(seen) if seen is not None else nominal,
        nominal_memory_bytes=nominal,
        memory_type=str(memory["type"]),
        unified_memory=bool(memory.get("unified", False)),
        bandwidth_bytes_per_second=_required(memory, "gigabytes_per_second") * GIGA,
        power_watts=_required(board, "power_watts"),
        pcie_generation=int(generation) if generation is not None else None,
        pcie_lanes=int(_number(links, "pcie_lanes") or 16),
        nvlink_bytes_per_second=_number(links, "nvlink_gigabytes_per_second", GIGA),
        nvlink_kind=str(kind) if kind is not None else None,
        compute_capability=_capability(str(capability)) if capability is not None else None,
        bf16="bf16" in formats,
        fp8="fp8" in formats,
        fp4="fp4" in formats,
        dense_bf16_flops=_number(compute, "dense_bf16_teraflops", TERA),
        form=str(board["form"]),
        mig=bool(compute.get("mig", False)),
        source=str(entry["source"]),
        unverified=_strings(entry, "unverified"),
    )


def _table(entry: Table, key: str) -> Table:
    value = entry.get(key, {})
    return value if isinstance(value, dict) else {}


def _number(entry: Table, key: str, scale: float = 1.0) -> float | None:
    value = entry.get(key)
    return float(value) * scale if isinstance(value, int | float) else None


def _required(entry: Table, key: str) -> float:
    value = _number(entry, key)
    if value is None:
        raise ValueError(f"gpus.toml: {key} is missing in {entry}")
    return value


def _strings(entry: Table, key: str) -> tuple[str, ...]:
    value = entry.get(key, [])
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _pci_id(text: str) -> PciId:
    parts = [int(part, 16) for part in text.split(":")]
    return PciId(*parts)


def _capability(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)
