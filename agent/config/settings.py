"""The agent's settings: plain frozen dataclasses, so that the daemon needs no pydantic.

Every setting has a default, its bounds, and the sentence that `talla-agent config` prints above
it. `agent.config.load` reads them from TOML.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from annotated_types import Ge, Le, Len, doc

DEFAULT_PATH = "/etc/talla/agent.toml"
"""Where the daemon looks for its configuration unless told otherwise."""

PhaseName = Literal[
    "training",
    "full_finetuning",
    "lora_finetuning",
    "qlora_finetuning",
    "finetuning",
    "llm_inference",
    "light_inference",
    "inference",
]
"""Phases that a person can declare (those of the advisor, less idle and unknown)."""

LogLevel = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Example:
    """What the default configuration shows for a setting that has no default."""

    value: str | float | bool | tuple[str | float, ...]


_REFUSE_UNKNOWN: dict[str, Any] = {"extra": "forbid", "allow_inf_nan": False}


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The daemon itself."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _REFUSE_UNKNOWN

    host: Annotated[
        str | None,
        Len(1, 255),
        doc("name of this server in the store and in InfluxDB; by default the machine's own name"),
        Example("gpu01"),
    ] = None
    log_level: Annotated[LogLevel, doc("what is logged")] = "info"


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The local store."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _REFUSE_UNKNOWN

    path: Annotated[
        str, Len(1), doc("the SQLite file; its folder must exist and be writable by the daemon")
    ] = "/var/lib/talla/agent.db"
    keep_10s_hours: Annotated[
        float, Ge(1), Le(24 * 31), doc("how long 10-second windows are kept, in hours")
    ] = 48.0
    keep_5m_days: Annotated[
        float, Ge(1), Le(3650), doc("how long 5-minute windows are kept, in days")
    ] = 400.0
    keep_process_days: Annotated[
        float,
        Ge(1),
        Le(3650),
        doc(
            "how long the rows of single processes are kept, in days; then a day is one row an"
            " owner"
        ),
    ] = 35.0
    max_bytes: Annotated[
        int,
        Ge(20_000_000),
        doc("what the store may take; beyond it the oldest 10-second windows go first"),
    ] = 1_000_000_000
    memory_windows: Annotated[
        int,
        Ge(10),
        Le(10_000),
        doc(
            "windows that wait in memory while the file cannot be written (a full disk, say);"
            " beyond it the oldest are dropped, and counted"
        ),
    ] = 500


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """The GPUs, read through NVIDIA's library in a process of its own."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _REFUSE_UNKNOWN

    enabled: Annotated[bool, doc("false: only the host is sampled")] = True
    deadline_seconds: Annotated[
        float,
        Ge(0.5),
        Le(60),
        doc("a call that takes longer counts as hung: its process is replaced"),
    ] = 5.0
    throughput_seconds: Annotated[
        float,
        Ge(1),
        Le(300),
        doc(
            "how often PCIe throughput is read where the driver has no byte counters (before R555);"
            " each reading takes 40 ms of the driver's time for each GPU"
        ),
    ] = 2.0
    profiling: Annotated[
        bool,
        doc(
            "false: SM, tensor and memory activity (GPM, Hopper and later) is not read; switch it"
            " off while Nsight or another profiler needs the counters"
        ),
    ] = True
    expected: Annotated[
        int | None,
        Ge(0),
        doc("how many GPUs this server has; without it, one that was never seen is not missed"),
        Example(8),
    ] = None


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Inference engines (vLLM, SGLang, TGI, TensorRT-LLM, llama.cpp, Ollama), asked on loopback."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _REFUSE_UNKNOWN

    enabled: Annotated[
        bool, doc("false: no engine is asked for its cache, its requests and its model")
    ] = True
    urls: Annotated[
        tuple[Annotated[str, Len(1)], ...],
        doc(
            "addresses of engines that are not found by themselves, as one in a container with a"
            " published port; plain http"
        ),
        Example(("http://127.0.0.1:8000",)),
    ] = ()


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """/metrics for Prometheus. It is on where `port` is set."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _REFUSE_UNKNOWN

    port: Annotated[int | None, Ge(1), Le(65535), doc("port of /metrics"), Example(9177)] = None
    address: Annotated[
        str, Len(1), doc("address that it listens on; there is no password, so keep it private")
    ] = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """Alert rules, judged here so that they work without a network. The advisor delivers them."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _REFUSE_UNKNOWN

    enabled: Annotated[bool, doc("false: no rule is judged")] = True
    rules: Annotated[
        str,
        Len(1),
        doc("folder of your own rules and exemptions (*.toml); see talla-agent rules"),
    ] = "/etc/talla/rules.d"


@dataclass(frozen=True, slots=True)
class InfluxSettings:
    """Shipping to InfluxDB. It is on where `url` is set."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _REFUSE_UNKNOWN

    url: Annotated[
        str | None,
        Len(1),
        doc(
            "http:// or https:// address of InfluxDB 2.x, 3.x or 1.8 (/api/v2/write), or of"
            " VictoriaMetrics"
        ),
        Example("https://influx.example.org:8086"),
    ] = None
    api: Annotated[
        Literal["v2", "v1"],
        doc(
            "v2: /api/v2/write (InfluxDB 1.8, 2.x, 3.x, VictoriaMetrics); v1: /write, for 1.7 and"
            " older, with bucket = database or database/retention policy"
        ),
    ] = "v2"
    org: Annotated[str, doc("organisation; InfluxDB 1.8 and VictoriaMetrics ignore it")] = "-"
    bucket: Annotated[
        str, Len(1), doc("bucket of the 10-second windows, events and inventory; 1.8: database/rp")
    ] = "talla"
    bucket_5m: Annotated[
        str | None,
        Len(1),
        doc("bucket of the 5-minute windows, if not the same"),
        Example("talla_5m"),
    ] = None
    token_file: Annotated[
        str | None,
        Len(1),
        doc(
            "file that holds the token; without it the systemd credential influx-token"
            " (LoadCredential=influx-token:FILE) is used. Never given on a command line"
        ),
        Example("/etc/talla/influx-token"),
    ] = None
    username: Annotated[
        str | None,
        Len(1),
        doc("user of InfluxDB 1.x; the token file then holds the password"),
        Example("talla"),
    ] = None
    ca_file: Annotated[
        str | None,
        Len(1),
        doc("certificates (PEM) of a private authority that signed the server's"),
        Example("/etc/talla/ca.pem"),
    ] = None
    timeout_seconds: Annotated[float, Ge(1), Le(300), doc("how long an answer is waited for")] = (
        10.0
    )
    batch_lines: Annotated[int, Ge(1), Le(50_000), doc("lines in one request at most")] = 2_000
    retry_seconds: Annotated[
        float,
        Ge(0.1),
        Le(3600),
        doc("first wait after a failure; it doubles up to max_retry_seconds"),
    ] = 2.0
    max_retry_seconds: Annotated[
        float,
        Ge(1),
        Le(86_400),
        doc("longest wait after a failure, and the wait after a refused token"),
    ] = 120.0
    backlog_hours: Annotated[
        float,
        Ge(1),
        doc(
            "windows that could not be shipped for so long stay in the store alone (10-second ones"
            " no longer than keep_10s_hours); how many is told"
        ),
    ] = 720.0
    backlog_bytes: Annotated[
        int,
        Ge(1_000_000),
        doc("what may wait to be shipped, about, in bytes of line protocol; the oldest is left"),
    ] = 1_000_000_000
    catch_up_lines_per_second: Annotated[
        float,
        Ge(10),
        doc("how fast a backlog is shipped at most; fresh windows go first"),
    ] = 2_000.0
    quarantine: Annotated[
        str | None,
        Len(1),
        doc("folder of lines that the server refused; by default `quarantine` beside the store"),
        Example("/var/lib/talla/quarantine"),
    ] = None
    quarantine_bytes: Annotated[
        int, Ge(10_000), doc("size at which the oldest refused lines are deleted")
    ] = 20_000_000


@dataclass(frozen=True, slots=True)
class WorkloadSettings:
    """What runs on this server, where no process tells."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _REFUSE_UNKNOWN

    phase: Annotated[PhaseName | None, doc("its phase"), Example("llm_inference")] = None
    model: Annotated[
        str | None, Len(1), doc("the model's name"), Example("Llama-3.1-8B-Instruct")
    ] = None
    parameters: Annotated[
        float | None, Ge(1), doc("how many parameters the model has"), Example(8e9)
    ] = None
    precision: Annotated[
        str | None, Len(1), doc("of the weights: bf16, fp8, awq, q4_k_m, ..."), Example("bf16")
    ] = None
    unit: Annotated[
        str | None,
        Len(1),
        doc("the systemd unit or container that runs it"),
        Example("vllm.service"),
    ] = None
    user: Annotated[str | None, Len(1), doc("the user who runs it"), Example("svc-llm")] = None
    gpus: Annotated[
        tuple[Annotated[int, Ge(0)], ...],
        doc("indexes of its GPUs; empty: all of them"),
        Example((0, 1)),
    ] = ()


@dataclass(frozen=True, slots=True)
class DiskBenchmark:
    """What you measured of a disk. A disk's speed is judged by this, or by its link's rate."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _REFUSE_UNKNOWN

    device: Annotated[str, Len(1), doc("the block device"), Example("nvme0n1")]
    read_bytes_per_second: Annotated[
        float,
        Ge(1),
        doc("what it gave, read in order past the page cache (fio --rw=read --bs=1M --direct=1)"),
        Example(6.5e9),
    ]


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What this server is for. Nothing here is guessed; the advisor takes it into account."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _REFUSE_UNKNOWN

    purpose: Annotated[
        str | None,
        Len(1),
        doc("what it was bought for, in your own words"),
        Example("chat service for all staff"),
    ] = None
    redundancy: Annotated[
        str | None,
        Len(1),
        doc("why part of it is a reserve, such as n+1; a declared reserve is never 'too much'"),
        Example("n+1"),
    ] = None
    standby: Annotated[
        bool | None, doc("true: the whole server waits for another one to fail"), Example(False)
    ] = None
    power_feed_watts: Annotated[
        float | None,
        Ge(1),
        doc("what its power supplies can deliver, one failed"),
        Example(10_400.0),
    ] = None
    pinned_phases: Annotated[
        tuple[PhaseName, ...],
        doc("phases that it must stay fit for, whatever was seen lately"),
        Example(("training",)),
    ] = ()
    data_paths: Annotated[
        tuple[Annotated[str, Len(1)], ...],
        doc("folders from which jobs read their data"),
        Example(("/data",)),
    ] = ()
    disk_benchmarks: Annotated[
        tuple[DiskBenchmark, ...],
        doc("one [[server.disk_benchmarks]] table for each disk that you measured"),
    ] = ()
    model: Annotated[
        str | None,
        Len(1),
        doc("the model that it serves or trains, where no process tells"),
        Example("Llama-3.1-8B-Instruct"),
    ] = None
    workloads: Annotated[
        tuple[WorkloadSettings, ...],
        doc("one [[server.workloads]] table for each kind of work"),
    ] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of the agent."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _REFUSE_UNKNOWN

    agent: AgentSettings = field(default_factory=AgentSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    gpu: GpuSettings = field(default_factory=GpuSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    prometheus: PrometheusSettings = field(default_factory=PrometheusSettings)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    influx: InfluxSettings = field(default_factory=InfluxSettings)
    server: ServerSettings = field(default_factory=ServerSettings)


def to_json(settings: Settings) -> str:
    """The settings as the launcher hands them to the daemon."""
    return json.dumps(asdict(settings))


def from_json(text: str) -> Settings:
    """The settings that `to_json` wrote. They were checked before; this checks nothing."""
    settings: Settings = _build(Settings, json.loads(text))
    return settings


def _build(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    if get_origin(kind) is UnionType:  # an optional setting
        kind = next(k for k in get_args(kind) if k is not NoneType)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{f.name: _build(hints[f.name], value[f.name]) for f in fields(kind)})  # type: ignore[operator]
    if get_origin(kind) is tuple:
        return tuple(_build(get_args(kind)[0], item) for item in value)
    return value
