"""Staged servers for the report: made-up windows and states, judged by the real sizing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from advisor.assessment import (
    Assessment,
    GpuHours,
    GpuTimeline,
    Observations,
    OwnerHours,
    Period,
)
from advisor.demand import JobDemand
from advisor.phase import Phase, Segment
from advisor.profiles import Profiles
from advisor.report.report import Report
from advisor.sizing import judge
from advisor.sizing.case import Case
from advisor.sizing.thresholds import Thresholds
from advisor.sizing.whatif import work
from telemetry.inventory import BlockDevice, Cpu, GpuInfo, Inventory, Mount, Nic, Pcie
from telemetry.states import Cause, State, WindowState
from telemetry.window import Frame

START = 1_772_409_600  # Mon 2 Mar 2026, 00:00 UTC
DAY = 86_400
WEEK = 7 * DAY
GB = 1e9
H100 = "NVIDIA H100 80GB HBM3"
L40S = "NVIDIA L40S"

Staging = Callable[[], Assessment]

# What a GPU does in the window at these seconds since START: state, utilisation, memory.
Doing = Callable[[int], tuple[WindowState, float, float] | None]


def inventory(
    host: str,
    *,
    cards: int,
    card: str = H100,
    card_bytes: float = 80 * GB,
    ram: float = 2000 * GB,
    cores: int = 96,
    nic: float = 25e9,
    nas: bool = False,
) -> Inventory:
    """A server; with `nas` its data lie on NFS."""
    uuids = [f"GPU-{host[:4]}-{i}" for i in range(cards)]
    gpus = tuple(
        GpuInfo(
            uuid,
            i,
            card,
            int(card_bytes),
            700.0,
            "9.0",
            pcie=Pcie(5, 16, 5, 16),
            nvlink_peers=tuple(u for u in uuids if u != uuid),
        )
        for i, uuid in enumerate(uuids)
    )
    data = Mount("/data", "nfs4", "nas:/export", None) if nas else Mount("/data", "ext4", "/", None)
    return Inventory(
        host,
        cpu=Cpu("AMD EPYC 9454", 2, cores, 2 * cores),
        memory_bytes=int(ram),
        gpus=gpus,
        block_devices=(BlockDevice("nvme0n1", "nvme", int(30e12)),),
        mounts=(Mount("/", "ext4", "/dev/nvme0n1p1", "nvme0n1"), replace(data, device="nvme0n1")),
        nics=(Nic("eth0", "ethernet", int(nic), "up"),),
        data_paths=("/data",),
    )


def timeline(uuid: str, doing: Doing, seconds: int, segments: list[Segment]) -> GpuTimeline:
    """Windows of 5 minutes from START on; None of `doing` is a gap."""
    frame = Frame(("gpu", uuid))
    columns: dict[str, list[float | None]] = {
        name: []
        for name in (
            "utilization_ratio",
            "utilization_ratio_max",
            "memory_used_bytes_max",
            "power_watts",
        )
    }
    frame.columns = columns
    states = []
    for t in range(0, seconds, 300):
        now = doing(t)
        if now is None:
            continue
        state, utilization, memory = now
        frame.start.append(START + t)
        frame.seconds.append(300)
        columns["utilization_ratio"].append(utilization)
        columns["utilization_ratio_max"].append(min(1.0, utilization * 1.2))
        columns["memory_used_bytes_max"].append(memory)
        columns["power_watts"].append(90 + 500 * utilization)
        states.append(state)
    return GpuTimeline(frame, states, segments)


def assessed(
    inventory: Inventory,
    doing: Mapping[int, Doing],
    phase: Phase,
    *,
    seconds: int = WEEK,
    demand: JobDemand | None = None,
    owner: tuple[str, str] = ("vllm.service", "unit"),
    model: str | None = None,
    frames: Mapping[str, list[Frame]] | None = None,
    evidence: str = "python -m vllm.entrypoints.openai.api_server",
) -> Assessment:
    """The assessment of a server whose GPU `i` did `doing[i]`."""
    period = Period(START, START + seconds)
    gpus = {}
    segments: list[Segment] = []
    for i, info in enumerate(inventory.gpus):
        own = [
            Segment(
                inventory.host,
                info.uuid,
                START,
                START + seconds,
                phase,
                0.9,
                (evidence,),
                model,
                "command line",
                70e9 if model else None,
                owner=owner[0],
                owner_kind=owner[1],
            )
        ]
        gpus[info.uuid] = timeline(info.uuid, doing[i], seconds, own)
        segments += own
    hours = tuple(_hours(inventory.host, u, t, seconds) for u, t in gpus.items())
    covered = max((sum(t.frame.seconds) for t in gpus.values()), default=0)
    seen = Observations(
        inventory.host,
        period,
        inventory,
        gpus,
        dict(frames or {}),
        covered / seconds,
        covered / 3600,
    )
    case = Case(
        inventory,
        Profiles.load(),
        Thresholds.load(),
        seen,
        {phase: 1.0},
        () if demand is None else (demand,),
        (70e9,) if model else (),
    )
    owned: dict[State, float] = {}
    for gpu in hours:
        for state, length in gpu.hours.items():
            if state not in (State.IDLE_FREE, State.UNKNOWN):
                owned[state] = owned.get(state, 0.0) + length
    return Assessment(
        inventory.host,
        inventory,
        period,
        period,
        hours,
        (OwnerHours(*owner, owned),) if owned else (),
        tuple(segments),
        judge(case),
        seen,
        work(case),
    )


def _hours(host: str, uuid: str, line: GpuTimeline, seconds: int) -> GpuHours:
    hours: dict[State, float] = {}
    causes: dict[Cause, float] = {}
    lost = 0.0
    for length, result in zip(line.frame.seconds, line.states, strict=True):
        hours[result.state] = hours.get(result.state, 0.0) + length / 3600
        if result.state is State.STARVED and result.cause is not None:
            causes[result.cause] = causes.get(result.cause, 0.0) + length / 3600
            lost += (result.lost_ratio or 0.0) * length / 3600
    missing = seconds / 3600 - sum(hours.values())
    if missing > 0:
        hours[State.UNKNOWN] = hours.get(State.UNKNOWN, 0.0) + missing
    return GpuHours(host, uuid, hours, causes, lost, sum(line.frame.seconds) / seconds)


BUSY = WindowState(State.BUSY, 0.9)
FREE = WindowState(State.IDLE_FREE, 0.95)
HELD = WindowState(State.IDLE_HELD, 0.9)
WAITING = WindowState(State.STARVED, 0.85, Cause.NETWORK_STORAGE, 0.45)


def _office(i: int) -> Doing:
    def doing(t: int) -> tuple[WindowState, float, float]:
        hour = t % DAY // 3600
        works = 8 <= hour < 19 and t // DAY < 5 and (t // 300 + i) % 7 != 0
        return (BUSY if works else HELD), (0.2 if works else 0.0), 72 * GB

    return doing


def chatbot() -> Assessment:
    """Eight H100 that serve an office: too many."""
    server = inventory("chat-01", cards=8)
    uuids = tuple(g.uuid for g in server.gpus)
    demand = JobDemand(
        uuids,
        Phase.LLM_INFERENCE,
        "Llama-3.1-70B",
        140 * GB,
        12 * GB,
        160 * GB,
        upper_bound=False,
        source="weights and peak KV cache",
        confidence=0.85,
    )
    return assessed(
        server,
        {i: _office(i) for i in range(8)},
        Phase.LLM_INFERENCE,
        demand=demand,
        model="Llama-3.1-70B",
    )


def training() -> Assessment:
    """A training run that a NAS on 1 Gb/s feeds, with little RAM: too small."""
    server = inventory("train-02", cards=4, ram=256 * GB, nic=1e9, nas=True)

    def doing(t: int) -> tuple[WindowState, float, float] | None:
        if t % (36 * 3600) < 5 * 3600:
            return FREE, 0.0, 0.0
        return (WAITING if (t // 300) % 5 else BUSY), 0.5, 60 * GB

    return assessed(
        server,
        dict.fromkeys(range(4), doing),
        Phase.TRAINING,
        owner=("maria", "user"),
        evidence="torchrun train.py",
    )


def finetuning() -> Assessment:
    """Two L40S that fine-tune most of the day: right."""
    server = inventory("tune-03", cards=2, card=L40S, card_bytes=48 * GB, ram=256 * GB, cores=32)

    def doing(t: int) -> tuple[WindowState, float, float]:
        works = t % DAY < 20 * 3600
        return (BUSY if works else FREE), (0.93 if works else 0.0), (41 * GB if works else 0.0)

    demand = JobDemand(
        tuple(g.uuid for g in server.gpus),
        Phase.QLORA_FINETUNING,
        None,
        None,
        None,
        82 * GB,
        upper_bound=True,
        source="allocator",
        confidence=0.7,
    )
    return assessed(
        server,
        dict.fromkeys(range(2), doing),
        Phase.QLORA_FINETUNING,
        demand=demand,
        owner=("finetune", "container"),
        evidence="python qlora.py",
    )


def gaps() -> Assessment:
    """A server whose agent was off for half of the week."""
    server = inventory("gaps-04", cards=2)

    def doing(t: int) -> tuple[WindowState, float, float] | None:
        return None if 2 <= t // DAY < 5 else (BUSY, 0.8, 50 * GB)

    return assessed(server, dict.fromkeys(range(2), doing), Phase.INFERENCE)


def no_gpu() -> Assessment:
    """A server without GPUs."""
    return assessed(inventory("cpu-05", cards=0), {}, Phase.UNKNOWN)


HOSTILE = '<script>alert("x")</script>"\'><img src=x onerror=alert(1)>'


def hostile() -> Assessment:
    """A server on which every name is an attack."""
    server = replace(inventory(HOSTILE, cards=1, card=HOSTILE), purpose=HOSTILE, model=HOSTILE)

    def doing(t: int) -> tuple[WindowState, float, float]:
        return HELD, 0.0, 10 * GB

    return assessed(
        server, {0: doing}, Phase.UNKNOWN, owner=(HOSTILE, HOSTILE), model=HOSTILE, evidence=HOSTILE
    )


def unseen() -> Assessment:
    """A host of which only the inventory is known."""
    server = inventory("new-06", cards=2)
    nothing = Period(0, 0)
    case = Case(server, Profiles.load(), Thresholds.load())
    return Assessment(server.host, server, nothing, nothing, (), (), (), judge(case))


def renamed(assessment: Assessment, host: str) -> Assessment:
    """The same server by another name."""
    return replace(
        assessment, host=host, findings=tuple(replace(f, host=host) for f in assessment.findings)
    )


def report(*assessments: Assessment) -> Report:
    """A report with a fixed time and version."""
    return Report.of(assessments, Profiles.load(), made=START + WEEK + 3600, version="0.1.0")
