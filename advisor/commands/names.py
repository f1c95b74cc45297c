"""How GPUs are called in tables for people."""

from __future__ import annotations

from telemetry.inventory import Inventory


def gpu_names(inventory: Inventory) -> dict[str, str]:
    """By UUID, the index that nvidia-smi shows where it is known, else the UUID."""
    return {gpu.uuid: gpu.uuid if gpu.index is None else str(gpu.index) for gpu in inventory.gpus}
