"""A server's hardware in a few words."""

from __future__ import annotations

from collections import Counter

from advisor.message import Amount, Message, say
from advisor.report import words
from telemetry.inventory import Inventory


def cards(inventory: Inventory) -> str:
    """The cards by model, such as `8 × NVIDIA H100 80GB HBM3`; empty where there are none."""
    models = Counter(gpu.name or "GPU" for gpu in inventory.gpus)
    return ", ".join(f"{number} × {name}" for name, number in models.items())


def facts(inventory: Inventory) -> list[tuple[Message, Message | Amount | str]]:
    """What is known of a server, as pairs of what and how much; the unknown is left out."""
    found: list[tuple[Message, Message | Amount | str]] = []
    if inventory.gpus:
        found.append((say("GPUs"), cards(inventory)))
    memory = [gpu.memory_bytes for gpu in inventory.gpus if gpu.memory_bytes is not None]
    if memory and len(memory) == len(inventory.gpus):
        found.append((say("GPU memory"), Amount(float(sum(memory)), "bytes")))
    if inventory.memory_bytes is not None:
        found.append((say("RAM"), Amount(float(inventory.memory_bytes), "bytes")))
    cpu = inventory.cpu
    if cpu is not None and cpu.physical_cores is not None:
        cores = Amount(cpu.physical_cores, "cores")
        model = cpu.model
        what = say("{model}, {cores}", model=model, cores=cores) if model else cores
        found.append((say("CPU"), what))
    nvme = [d.size_bytes for d in inventory.block_devices if d.kind == "nvme" and d.size_bytes]
    if nvme:
        found.append((say("Local NVMe"), Amount(float(sum(nvme)), "bytes")))
    speeds = [n.speed_bits_per_second for n in inventory.nics if n.speed_bits_per_second]
    if speeds:
        found.append((say("Fastest network link"), Amount(float(max(speeds)), "bits/second")))
    if inventory.purpose:
        phase = next((p for p in words.PHASES if p.value == inventory.purpose), None)
        purpose = inventory.purpose if phase is None else words.PHASES[phase]
        found.append((say("Declared purpose"), purpose))
    if inventory.model:
        found.append((say("Declared model"), inventory.model))
    if inventory.data_paths:
        found.append((say("Declared data paths"), ", ".join(inventory.data_paths)))
    return found
