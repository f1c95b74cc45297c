"""Small servers made by hand, for properties: frames and states without a simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.assess import case_of
from advisor.assessment import GpuTimeline, Observations, Period
from advisor.phase import Phase, Segment
from advisor.rulebook import Rulebook
from advisor.sizing.case import Case
from telemetry.inventory import Cpu, GpuInfo, Inventory, Nic, Pcie
from telemetry.state import Cause, State, WindowState
from telemetry.window import Frame

START = 1_736_121_600
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
WEEK = 2016
RAM_BYTES = int(512e9)
BUSY = WindowState(State.BUSY, 0.9)
FREE = WindowState(State.IDLE_FREE, 0.9)


@dataclass(frozen=True)
class Made:
    """A server with one job, a chatbot unless another `phase` is named, on so many cards.

    `levels` are the GPUs' utilisation, repeated over the windows. Windows begin `offset` seconds
    past a multiple of five minutes, as an import's may. `cache` is the KV cache in use, of `pool`
    bytes; `seen` the windows that were kept (all: None). A share of `lost` of each window went to
    `cause`. `host` tells how much of its RAM was in use.
    """

    cards: int = 2
    card: str = "NVIDIA L40S"
    card_bytes: int = 48_305_799_168
    levels: tuple[float, ...] = (0.5,)
    cache: float = 0.5
    pool: float = 20e9
    waiting: float = 0.0
    windows: int = WEEK
    seen: frozenset[int] | None = None
    idle_windows: int = 0
    backwards: bool = False
    offset: int = 0
    phase: Phase = Phase.LLM_INFERENCE
    lost: float = 0.0
    cause: Cause = Cause.LOCAL_STORAGE
    host: float | None = None


def observations(made: Made) -> Observations:
    """What was seen of it, over `windows` and then `idle_windows` windows of five minutes."""
    uuids = [f"GPU-{i}" for i in range(made.cards)]
    total = made.windows + made.idle_windows
    kept = [i for i in range(total) if made.seen is None or i in made.seen]
    gpus = {uuid: _gpu(made, uuid, tuple(uuids), kept) for uuid in uuids}
    engine = Frame(
        ("engine", "8000"),
        [START + made.offset + 300 * i for i in kept],
        [300] * len(kept),
        {
            "kv_cache_usage_ratio": [made.cache if i < made.windows else 0.0 for i in kept],
            "kv_cache_bytes": [made.pool] * len(kept),
            "requests_waiting": [made.waiting if i < made.windows else 0.0 for i in kept],
        },
        [{"engine": "vllm", "gpu_uuids": " ".join(uuids)}] * len(kept),
    )
    if made.backwards:
        gpus = dict(reversed(gpus.items()))
    covered = 300.0 * len(kept)
    return Observations(
        "made",
        Period(START + made.offset, START + made.offset + 300 * total),
        _inventory(made, uuids),
        gpus,
        {
            "engine": [engine] if made.phase is Phase.LLM_INFERENCE else [],
            "host": [] if made.host is None else [_host(made, made.host, kept)],
            **{name: [] for name in ("disk", "mount", "nic", "gpu_process")},
        },
        covered / (300 * total),
        covered / 3600,
    )


def case(made: Made, rulebook: Rulebook) -> Case:
    """The server as sizing sees it."""
    return case_of(observations(made), rulebook)


def _gpu(made: Made, uuid: str, uuids: tuple[str, ...], kept: Sequence[int]) -> GpuTimeline:
    levels = [made.levels[i % len(made.levels)] if i < made.windows else 0.0 for i in kept]
    frame = Frame(
        ("gpu", uuid),
        [START + made.offset + 300 * i for i in kept],
        [300] * len(kept),
        {
            "utilization_ratio": list(levels),
            "utilization_ratio_max": [min(1.0, level * 1.2) for level in levels],
            "memory_used_bytes_max": [0.9 * made.card_bytes] * len(kept),
        },
    )
    segment = Segment(
        "made",
        uuid,
        START,
        START + made.offset + 300 * made.windows,
        made.phase,
        0.9,
        model=MODEL,
        precision="bf16",
        gpus=uuids,
    )
    worked = BUSY
    if made.lost:
        worked = WindowState(State.STARVED, 0.9, cause=made.cause, lost_ratio=made.lost)
    return GpuTimeline(frame, [worked if i < made.windows else FREE for i in kept], [segment])


def _host(made: Made, used: float, kept: Sequence[int]) -> Frame:
    return Frame(
        ("host",),
        [START + made.offset + 300 * i for i in kept],
        [300] * len(kept),
        {
            "memory_used_bytes": [used * RAM_BYTES] * len(kept),
            "pressure_memory_some_ratio": [
                made.lost if made.cause is Cause.HOST_MEMORY and i < made.windows else 0.0
                for i in kept
            ],
            "cpu_busy_ratio": [made.lost if i < made.windows else 0.0 for i in kept],
        },
    )


def _inventory(made: Made, uuids: Sequence[str]) -> Inventory:
    gpus = [
        GpuInfo(uuid, i, made.card, made.card_bytes, 350.0, "8.9", pcie=Pcie(4, 16, 4, 16))
        for i, uuid in enumerate(uuids)
    ]
    gpus = [replace(gpu, nvlink_peers=()) for gpu in gpus]
    return Inventory(
        "made",
        Cpu("a processor", 1, 32, 64),
        RAM_BYTES,
        tuple(reversed(gpus)) if made.backwards else tuple(gpus),
        nics=(Nic("eth0", "ethernet", int(25e9), "up"),),
    )
