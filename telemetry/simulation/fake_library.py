"""A scenario as files of the fake NVML library, whose second 0 is the scenario's `start`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from telemetry.simulation.hardware import MEBI
from telemetry.simulation.history import Simulation
from telemetry.simulation.scenario import Scenario
from telemetry.simulation.server import SimulatedGpu
from telemetry.simulation.timeline import Timeline, process_id

# Our metric, the library's signal, and how many of its units one of ours is.
_SIGNALS = (
    ("utilization_ratio", "util", 100.0),
    ("memory_utilization_ratio", "memutil", 100.0),
    ("memory_used_bytes", "mem_used_mib", 1 / MEBI),
    ("temperature_celsius", "temp", 1.0),
    ("memory_temperature_celsius", "mem_temp", 1.0),
    ("power_watts", "power_w", 1.0),
    ("sm_clock_hertz", "sm_clock", 1e-6),
    ("memory_clock_hertz", "mem_clock", 1e-6),
    ("pcie_tx_bytes_per_second", "pcie_tx_kbs", 1e-3),
    ("pcie_rx_bytes_per_second", "pcie_rx_kbs", 1e-3),
    ("nvlink_tx_bytes_per_second", "nvlink_tx_kbs", 1 / 1024),
    ("nvlink_rx_bytes_per_second", "nvlink_rx_kbs", 1 / 1024),
    ("sm_active_ratio", "sm_active", 100.0),
    ("sm_occupancy_ratio", "sm_occ", 100.0),
    ("tensor_active_ratio", "tensor", 100.0),
    ("dram_active_ratio", "dram_bw", 100.0),
)
# Bits of NVML's clock event reasons (nvml.h): power cap, thermal slowdown, power brake.
_THROTTLE = (
    ("throttle_power_cap_ratio", 0x4),
    ("throttle_thermal_ratio", 0x20),
    ("throttle_power_ratio", 0x80),
)
# The links of an NVLink card; the library only needs to know that there are some.
_LINKS = 18


def fake_library(
    scenario: Scenario,
    folder: Path,
    *,
    start: int,
    seconds: int = 3600,
    origin: int | None = None,
    processes: Mapping[tuple[str, int], int] | None = None,
) -> Path:
    """Writes `scenario.txt` and the traces that it names into `folder`; returns its path.

    The library repeats the traces after `seconds`. Its processes are those that are there at
    `start` and stay; `processes` gives ids of real ones by (job, GPU index), as an agent looks
    them up in /proc, where the simulated ids are nobody's.
    """
    origin = start if origin is None else origin
    simulation = Simulation(scenario, origin)
    columns: dict[str, list[dict[str, float]]] = {gpu.uuid: [] for gpu in scenario.server.gpus}
    for second in range(seconds):
        rows = simulation.sample(start + second).rows
        for gpu in scenario.server.gpus:
            columns[gpu.uuid].append(_signals(rows["gpu", gpu.uuid]))
    lines = [f"# {scenario.title}: {seconds} seconds, repeated", f"gpus={len(columns)}"]
    for gpu in scenario.server.gpus:
        lines += _identity(gpu)
        lines += _trace(gpu.index, columns[gpu.uuid], folder)
    lines += _processes(scenario, start, origin, processes or {})
    path = folder / "scenario.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def _signals(row: Mapping[str, float]) -> dict[str, float]:
    signals = {name: row[metric] * factor for metric, name, factor in _SIGNALS if metric in row}
    signals.setdefault("mem_temp", 0.0)  # so says a card without a sensor
    signals["throttle"] = float(sum(bit for metric, bit in _THROTTLE if row[metric] >= 0.5))
    return signals


def _identity(gpu: SimulatedGpu) -> list[str]:
    card = gpu.card
    major, minor = card.compute_capability.split(".")
    facts: dict[str, object] = {
        "name": card.name,
        "uuid": gpu.uuid,
        "mem_total_mib": card.memory_bytes // MEBI,
        "reserved_mib": card.reserved_bytes // MEBI,
        "power_limit_w": card.power_limit_watts,
        "nvlinks": 0 if card.nvlink == "none" else _LINKS,
        "cc_major": major,
        "cc_minor": minor,
        "pci_device_id": card.pci_device_id,
        "gpm": int(card.gpm),
        **dict.fromkeys(("gen", "max_gen", "card_max_gen"), card.pcie_generation),
    }
    return [f"gpu{gpu.index}.{key}={value}" for key, value in facts.items()]


def _trace(index: int, rows: list[dict[str, float]], folder: Path) -> list[str]:
    """The GPU's signals: a number where one never changes, else a column of its trace."""
    prefix = f"gpu{index}."
    changing = [name for name in rows[0] if any(row[name] != rows[0][name] for row in rows)]
    lines = [f"{prefix}{name}={_number(rows[0][name])}" for name in rows[0]]
    if not changing:
        return lines
    path = (folder / f"gpu{index}.csv").resolve()
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(["seconds", *changing]) + "\n")
        # The library holds a row's values until the next row, and goes round at the last one.
        for second, row in enumerate([*rows, rows[0]]):
            values = ",".join(_number(row[name]) for name in changing)
            if second in (0, len(rows)) or row != rows[second - 1]:
                file.write(f"{second},{values}\n")
    lines = [line for line in lines if line.partition("=")[0].removeprefix(prefix) not in changing]
    return lines + [
        f"{prefix}{name}=trace:{path},{column}" for column, name in enumerate(changing, start=1)
    ]


def _processes(
    scenario: Scenario, start: int, origin: int, real: Mapping[tuple[str, int], int]
) -> list[str]:
    lines: list[str] = []
    present = Timeline(scenario, origin).at(start)
    for activity in present.situation.activities:
        job = activity.job
        run = job.alive.run(start, origin)
        if run is None or not job.visible:
            continue
        busy = job.working["utilization_ratio"].at(start) if activity.working else 0.0
        for index in job.gpus:
            pid = real.get((job.name, index), process_id(job, run, index))
            memory = job.gpu_memory_bytes / MEBI
            lines.append(f"gpu{index}.proc={pid},C,{_number(memory)},{round(busy * 100)}")
    return lines


def _number(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")
