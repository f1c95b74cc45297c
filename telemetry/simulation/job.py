"""A job of a scenario: a process on each of its GPUs, what it needs and how it behaves."""

from __future__ import annotations

from dataclasses import dataclass

from telemetry.metrics import GPU
from telemetry.simulation.patterns import Constant, Pattern
from telemetry.simulation.quantity import Dimension
from telemetry.simulation.reader import Table
from telemetry.simulation.schedule import Schedule, parse_schedule
from telemetry.simulation.server import Server, SimulatedMount

# What a job may say of a GPU while it works or waits. Power and clock are relative, so that the
# same job runs on another card: of the span from held to limit, and of the highest clock.
LEVELS = frozenset(
    {
        "utilization_ratio",
        "memory_utilization_ratio",
        "power_ratio",
        "clock_ratio",
        "temperature_celsius",
        "pcie_rx_bytes_per_second",
        "pcie_tx_bytes_per_second",
        "nvlink_rx_bytes_per_second",
        "nvlink_tx_bytes_per_second",
        "sm_active_ratio",
        "sm_occupancy_ratio",
        "tensor_active_ratio",
        "dram_active_ratio",
        "throttle_thermal_ratio",
        "throttle_power_ratio",
        "throttle_power_cap_ratio",
    }
)
assert all(GPU.metric(name) for name in LEVELS - {"power_ratio", "clock_ratio"})

_HELD: dict[str, Pattern] = {
    "utilization_ratio": Constant(0.0),
    "power_ratio": Constant(0.0),
    "clock_ratio": Constant(1.0),
    "temperature_celsius": Constant(38.0),
}


@dataclass(frozen=True, slots=True)
class Input:
    """What the job reads: a chunk of data for each `compute_seconds` of GPU work.

    The loader reads and decodes the next chunk only as far ahead as `prefetch_ratio` of it; the
    rest waits until the GPU is done with this one. `decode_core_seconds` is the processor time
    that one chunk takes, spread over `workers`.
    """

    mount: SimulatedMount
    chunk_bytes: float
    read_size_bytes: float
    prefetch_ratio: float
    workers: int
    decode_core_seconds: float


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The job stops, writes `size_bytes` to `mount` and goes on, once every `every` seconds."""

    mount: SimulatedMount
    size_bytes: float
    every: int


@dataclass(frozen=True, slots=True)
class Requests:
    """The job works for requests: `busy_ratio` of the seconds at the peak of the day.

    `daily` is the level of each hour (UTC), a share of the peak; `weekend_ratio` scales it.
    """

    busy_ratio: float
    daily: tuple[float, ...]
    weekend_ratio: float


@dataclass(frozen=True, slots=True)
class Engine:
    """An LLM engine, which fills its cards and uses a part of that for its requests."""

    name: str
    version: str
    port: int
    model: str
    memory_utilization: float
    weights_bytes: float
    overhead_bytes: float
    kv_bytes_per_token: float
    tokens_per_request: float
    requests_at_peak: float
    prompt_tokens_per_second: float
    generation_tokens_per_second: float


@dataclass(frozen=True, slots=True)
class Job:
    """One job. `gpus` are indices; memory is that of each GPU, host memory that of the whole job.

    `visible` is false where no process answers for the memory (an orphan). While `alive` and not
    at work, it holds its memory and waits.
    """

    name: str
    command: str
    process_name: str
    user: str
    owner: str
    owner_kind: str
    gpus: tuple[int, ...]
    alive: Schedule
    works: Schedule
    visible: bool
    gpu_memory_bytes: int
    host_memory_bytes: float
    host_memory_pass_seconds: float
    cpu_cores: float
    compute_seconds: int
    input: Input | None
    checkpoint: Checkpoint | None
    requests: Requests | None
    engine: Engine | None
    working: dict[str, Pattern]
    waiting: dict[str, Pattern]


def read_job(name: str, table: Table, server: Server) -> Job:
    """The job of its table. Raises ScenarioError."""
    gpus = _gpus(table, server)
    engine = _engine(table.table("engine"), server, gpus) if table.has_table("engine") else None
    command = table.text("command")
    job = Job(
        name=name,
        command=command,
        process_name=table.text("process_name", command.split()[0].rsplit("/", 1)[-1]),
        user=table.text("user"),
        owner=table.text("owner"),
        owner_kind=table.text("owner_kind", "unit"),
        gpus=gpus,
        alive=_schedule(table, "alive"),
        works=_schedule(table, "works"),
        visible=table.flag("visible", True),
        gpu_memory_bytes=_gpu_memory(table, server, gpus, engine),
        host_memory_bytes=table.quantity("host_memory", Dimension.BYTES, 4 * 2.0**30),
        host_memory_pass_seconds=table.quantity("host_memory_pass", Dimension.SECONDS, 300.0),
        cpu_cores=table.number("cpu_cores", 1.0),
        compute_seconds=int(table.quantity("compute", Dimension.SECONDS, 20.0)),
        input=_input(table.table("input"), server) if table.has_table("input") else None,
        checkpoint=_checkpoint(table, server),
        requests=_requests(table.table("requests")) if table.has_table("requests") else None,
        engine=engine,
        working=_HELD | {"utilization_ratio": Constant(0.97)} | table.patterns("working", LEVELS),
        waiting=_HELD | table.patterns("waiting", LEVELS),
    )
    if job.requests is not None and job.input is not None:
        table.fail("requests", "either requests or input, not both")
    if job.compute_seconds < 1:
        table.fail("compute", "at least one second")
    table.close()
    return job


def _gpus(table: Table, server: Server) -> tuple[int, ...]:
    value = table.raw("gpus", "all")
    if value == "all":
        return tuple(gpu.index for gpu in server.gpus)
    count = len(server.gpus)
    if (
        not isinstance(value, list)
        or not value
        or any(isinstance(i, bool) or not isinstance(i, int) for i in value)
        or not all(0 <= i < count for i in value)
    ):
        table.fail("gpus", f'"all" or a list of indices from 0 to {count - 1}')
    return tuple(sorted(set(value)))


def _schedule(table: Table, key: str) -> Schedule:
    try:
        return parse_schedule(table.raw(key, "always"))
    except ValueError as error:
        table.fail(key, str(error))


def _gpu_memory(table: Table, server: Server, gpus: tuple[int, ...], engine: Engine | None) -> int:
    smallest = min((server.gpus[i].card.memory_bytes for i in gpus), default=0)
    if engine is not None and not table.has("gpu_memory"):
        return int(engine.memory_utilization * smallest)
    size = int(table.quantity("gpu_memory", Dimension.BYTES))
    if size > smallest:
        table.fail("gpu_memory", f"at most the {smallest} bytes of the card")
    return size


def _mount(table: Table, server: Server) -> SimulatedMount:
    return server.mounts[table.text("mount", among=tuple(server.mounts))]


def _input(table: Table, server: Server) -> Input:
    found = Input(
        mount=_mount(table, server),
        chunk_bytes=table.quantity("chunk", Dimension.BYTES),
        read_size_bytes=table.quantity("read_size", Dimension.BYTES, 2.0**20),
        prefetch_ratio=table.number("prefetch_ratio", 0.1, at_most=1.0),
        workers=table.whole("workers", at_least=1),
        decode_core_seconds=table.number("decode_core_seconds", 0.0),
    )
    table.close()
    return found


def _checkpoint(job: Table, server: Server) -> Checkpoint | None:
    if not job.has_table("checkpoint"):
        return None
    table = job.table("checkpoint")
    found = Checkpoint(
        mount=_mount(table, server),
        size_bytes=table.quantity("size", Dimension.BYTES),
        every=int(table.quantity("every", Dimension.SECONDS)),
    )
    if found.every < 60:
        table.fail("every", "at least a minute")
    table.close()
    return found


def _requests(table: Table) -> Requests:
    found = Requests(
        busy_ratio=table.number("busy_ratio", at_most=1.0),
        daily=table.numbers("daily", 24),
        weekend_ratio=table.number("weekend_ratio", 1.0, at_most=1.0),
    )
    if not all(0 <= level <= 1 for level in found.daily):
        table.fail("daily", "24 shares of the peak, from 0 to 1")
    table.close()
    return found


def _engine(table: Table, server: Server, gpus: tuple[int, ...]) -> Engine:
    found = Engine(
        name=table.text("name", "vllm"),
        version=table.text("version"),
        port=table.whole("port", at_least=1),
        model=table.text("model"),
        memory_utilization=table.number("memory_utilization", 0.9, at_most=1.0),
        weights_bytes=table.quantity("weights", Dimension.BYTES),
        overhead_bytes=table.quantity("overhead", Dimension.BYTES, 1.5e9),
        kv_bytes_per_token=table.quantity("kv_per_token", Dimension.BYTES),
        tokens_per_request=table.number("tokens_per_request", at_least=1.0),
        requests_at_peak=table.number("requests_at_peak"),
        prompt_tokens_per_second=table.number("prompt_tokens_per_second"),
        generation_tokens_per_second=table.number("generation_tokens_per_second"),
    )
    cards = [server.gpus[i].card.memory_bytes for i in gpus]
    if kv_cache_bytes(found, cards) <= 0:
        table.fail("weights", "weights that fit on the job's cards")
    table.close()
    return found


def kv_cache_bytes(engine: Engine, card_bytes: list[int]) -> float:
    """What the engine has left for its cache on these cards, once weights and overhead are in."""
    held = engine.memory_utilization * sum(card_bytes)
    return held - engine.weights_bytes - engine.overhead_bytes * len(card_bytes)
