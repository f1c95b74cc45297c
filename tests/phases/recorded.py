"""A server's 5-minute windows written down by hand, and the history that reads them back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from advisor.assessment import Observations
from advisor.history import LocalHistory
from advisor.observe import observe
from advisor.period import period
from telemetry.inventory import Cpu, GpuInfo, Inventory
from telemetry.store import Store
from telemetry.window import Key, Row, Window

START = 1_772_323_200
GIB = 2.0**30
HOUR = 12
"""Windows of an hour."""

VLLM = "/usr/bin/python3 /usr/local/bin/vllm serve meta-llama/Llama-3.1-8B-Instruct"
SFT = "trl sft --model_name_or_path meta-llama/Llama-3.1-8B-Instruct --use_peft --load_in_4bit"
PRETRAIN = "torchrun --nproc_per_node 4 pretrain_gpt.py --bf16"

Values = dict[str, float]


def work(utilization: float = 0.97, power: float = 650.0, gib: float = 60.0) -> Values:
    """A window of an H100 at work."""
    return {
        "covered_seconds": 300.0,
        "utilization_ratio": utilization,
        "utilization_ratio_max": 1.0,
        "utilization_ratio_zero_ratio": 0.0,
        "utilization_ratio_busy_ratio": 1.0,
        "power_watts": power,
        "power_watts_max": power,
        "power_watts_min": power * 0.9,
        "memory_used_bytes": gib * GIB,
        "memory_used_bytes_min": gib * GIB,
        "memory_used_bytes_max": gib * GIB,
        "memory_total_bytes": 80 * GIB,
        "power_limit_watts": 700.0,
        "process_count": 1.0,
        "gap_ratio": 0.0,
        "gap_lost_ratio": 0.0,
    }


def rest(gib: float = 0.0) -> Values:
    """A window in which nothing ran."""
    return {
        **work(0.0, 80.0, gib),
        "utilization_ratio_max": 0.0,
        "utilization_ratio_zero_ratio": 1.0,
        "utilization_ratio_busy_ratio": 0.0,
        "process_count": 1.0 if gib else 0.0,
        "gap_ratio": 1.0,
        "gap_lost_ratio": 1.0,
    }


class Recorder:
    """Windows of one host, one after the other; None for a GPU that was not read."""

    def __init__(self, gpus: int, inventory: Inventory | None = None) -> None:
        self.uuids = [f"GPU-{i}" for i in range(gpus)]
        self.inventory = inventory or Inventory(
            "host",
            cpu=Cpu(threads=64),
            gpus=tuple(
                GpuInfo(uuid, i, "NVIDIA H100 80GB HBM3") for i, uuid in enumerate(self.uuids)
            ),
        )
        self.windows: list[Window] = []
        self._next = START

    def add(
        self,
        windows: int,
        gpus: Sequence[Values | None],
        processes: Sequence[Sequence[str]] = (),
        *,
        owner: str = "ana",
        more: dict[Key, Row] | None = None,
    ) -> Recorder:
        """Some windows alike. `processes` are the command lines on each GPU."""
        for _ in range(windows):
            rows: dict[Key, Row] = dict(more or {})
            for uuid, values in zip(self.uuids, gpus, strict=True):
                if values is not None:
                    rows["gpu", uuid] = Row(dict(values))
            for uuid, commands in zip(self.uuids, processes, strict=False):
                for slot, command in enumerate(commands):
                    texts = {"command": command, "owner": owner, "owner_kind": "user"}
                    rows["gpu_process", uuid, str(slot)] = Row(
                        {"covered_seconds": 300.0, "memory_bytes": 1e9}, texts
                    )
            self.windows.append(Window("host", 300, self._next, 300, rows))
            self._next += 300
        return self

    def gap(self, windows: int) -> Recorder:
        """Time in which nothing was recorded."""
        self._next += 300 * windows
        return self

    def observe(self, folder: Path) -> Observations:
        """What the advisor sees of it, through a real store."""
        path = folder / "recorded.db"
        with Store(path) as store:
            store.append(
                self.windows,
                inventories=[(float(START), self.inventory.host, self.inventory.to_json())],
            )
        with LocalHistory([path]) as history:
            whole = period(history, self.inventory.host, 1e9)
            assert whole is not None
            return observe(history, self.inventory.host, whole)


Told = list[tuple[int, int, str]]


def told(observations: Observations, uuid: str) -> Told:
    """The segments of a GPU in windows from the beginning."""
    return [
        ((s.start - START) // 300, (s.end - START) // 300, s.phase.value)
        for s in observations.gpus[uuid].segments
    ]
