"""`talla-advisor gpus`: the GPU catalogue."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from advisor.catalogue import Gpu


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    parser = subparsers.add_parser("gpus", help="the GPUs that Talla knows, with sources")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints every GPU of the catalogue."""
    from advisor.catalogue import gpus

    if args.json:
        print(json.dumps([_document(gpu) for gpu in gpus()], indent=2, ensure_ascii=False))
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table()
    table.add_column("GPU", overflow="fold")
    for heading in ("GiB", "GB/s", "W", "PCIe", "NVLink GB/s", "CC", "formats"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("not confirmed", overflow="fold")
    for gpu in gpus():
        table.add_row(
            gpu.name,
            f"{gpu.memory_bytes / (1 << 30):.1f}",
            f"{gpu.bandwidth_bytes_per_second / 1e9:,.0f}",
            f"{gpu.power_watts:g}",
            "-" if gpu.pcie_generation is None else str(gpu.pcie_generation),
            "-" if not gpu.nvlink_bytes_per_second else f"{gpu.nvlink_bytes_per_second / 1e9:g}",
            "-" if gpu.compute_capability is None else "{}.{}".format(*gpu.compute_capability),
            " ".join(_formats(gpu)) or "-",
            ", ".join(gpu.unverified),
        )
    Console().print(table)
    return 0


def _formats(gpu: Gpu) -> list[str]:
    kinds = (("bf16", gpu.bf16), ("fp8", gpu.fp8), ("fp4", gpu.fp4))
    return [name for name, present in kinds if present]


def _document(gpu: Gpu) -> dict[str, object]:
    told: dict[str, object | None] = {
        "name": gpu.name,
        "nvml_names": list(gpu.nvml_names),
        "pci_ids": [str(pci) for pci in gpu.pci_ids] or None,
        "memory_bytes": gpu.memory_bytes,
        "nominal_memory_bytes": gpu.nominal_memory_bytes,
        "memory_type": gpu.memory_type,
        "bandwidth_bytes_per_second": gpu.bandwidth_bytes_per_second,
        "power_watts": gpu.power_watts,
        "pcie_generation": gpu.pcie_generation,
        "nvlink_bytes_per_second": gpu.nvlink_bytes_per_second,
        "nvlink_kind": gpu.nvlink_kind,
        "compute_capability": None
        if gpu.compute_capability is None
        else "{}.{}".format(*gpu.compute_capability),
        "formats": _formats(gpu),
        "dense_bf16_flops": gpu.dense_bf16_flops,
        "form": gpu.form,
        "mig": gpu.mig,
        "unified_memory": gpu.unified_memory or None,
        "source": gpu.source,
        "unverified": list(gpu.unverified) or None,
    }
    return {name: value for name, value in told.items() if value is not None}
