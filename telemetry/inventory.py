"""What a server is: the shape that `talla-agent inventory --json` prints and the store keeps.

Every field that is None or empty is unknown and left out of the JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Cpu:
    """Processors: sockets, cores that exist in silicon, and hardware threads."""

    model: str | None = None
    sockets: int | None = None
    physical_cores: int | None = None
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class Pcie:
    """The PCIe link of a card: the best seen under load, and what card and slot allow."""

    generation: int | None = None
    width: int | None = None
    max_generation: int | None = None
    max_width: int | None = None
    slot_max_generation: int | None = None
    slot_max_width: int | None = None


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A slice of a card."""

    gi: int
    ci: int
    profile: str | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class GpuInfo:
    """One card. `nvlink_peers` is None where unknown and empty where there are none.

    `nvlink_links` is how many NVLinks are up; `virtualization` is passthrough, vgpu, vgpu_host or
    vsga_host, absent on the machine itself; `memory_kind` is unified where it is the host's.
    """

    uuid: str
    index: int | None = None
    name: str | None = None
    memory_bytes: int | None = None
    power_limit_watts: float | None = None
    compute_capability: str | None = None
    pci_device_id: str | None = None
    pci_bus_id: str | None = None
    pcie: Pcie | None = None
    nvlink_peers: tuple[str, ...] | None = None
    nvlink_links: int | None = None
    virtualization: str | None = None
    memory_kind: str | None = None
    mig: tuple[MigInstance, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """A whole block device. `kind` is nvme, ssd or hdd, absent where it cannot be told.

    `link_bytes_per_second` is the most that its link carries, `benchmark_bytes_per_second` what
    the user says to have read from it.
    """

    name: str
    kind: str | None = None
    size_bytes: int | None = None
    link_bytes_per_second: float | None = None
    benchmark_bytes_per_second: float | None = None

    def ceiling(self) -> tuple[float, str] | None:
        """The most that it gives, and by what: the user's `benchmark`, else its `link`."""
        if self.benchmark_bytes_per_second is not None:
            return self.benchmark_bytes_per_second, "benchmark"
        if self.link_bytes_per_second is not None:
            return self.link_bytes_per_second, "link"
        return None


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system and the block device (if any) that carries it."""

    path: str
    fstype: str
    source: str
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Nic:
    """A network interface, or a port of InfiniBand or RoCE: `kind` says which.

    A RoCE port is on the link of `interface`, and `gid_type` says how it is carried there.
    """

    name: str
    kind: str = "ethernet"
    speed_bits_per_second: int | None = None
    state: str | None = None
    interface: str | None = None
    gid_type: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What a cgroup and those above it allow at most; None where none of them sets a limit.

    `cpu_cores` is processor time (quota by period), `cpuset_threads` how many hardware threads
    its tasks may run on, where that is fewer than all. Above `memory_high_bytes` they are slowed
    down, at `memory_max_bytes` killed. `owner_kind` says whose such cgroups are.
    """

    cpu_cores: float | None = None
    cpuset_threads: int | None = None
    memory_max_bytes: int | None = None
    memory_high_bytes: int | None = None
    owner_kind: str | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """What a person says about the work on this server, where no process tells.

    `phase` as in the advisor's phases, `parameters` a count, `precision` such as bf16 or q4_k_m.
    """

    phase: str | None = None
    model: str | None = None
    parameters: float | None = None
    precision: str | None = None
    unit: str | None = None
    user: str | None = None
    gpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Inventory:
    """One server, and what its configuration declares about it.

    `limits` hold for all that the agent sees (in a container: the container's), `job_limits` are
    those under which processes of GPUs were seen to run, each once. `platform` is wsl in the
    Windows Subsystem for Linux.
    """

    host: str
    cpu: Cpu | None = None
    memory_bytes: int | None = None
    gpus: tuple[GpuInfo, ...] = ()
    block_devices: tuple[BlockDevice, ...] = ()
    mounts: tuple[Mount, ...] = ()
    nics: tuple[Nic, ...] = ()
    platform: str | None = None
    limits: Limits | None = None
    job_limits: tuple[Limits, ...] = ()
    power_feed_watts: float | None = None
    purpose: str | None = None
    redundancy: str | None = None
    standby: bool | None = None
    pinned_phases: tuple[str, ...] = ()
    data_paths: tuple[str, ...] = ()
    model: str | None = None
    workloads: tuple[Workload, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The JSON object; what is unknown is not in it."""
        document: dict[str, Any] = _plain(self)
        return document


def data_mount(inventory: Inventory, path: str) -> Mount | None:
    """The mount that a path lies on, None where none of the inventory holds it."""
    return max(
        (m for m in inventory.mounts if _within(path, m.path)),
        key=lambda m: len(m.path),
        default=None,
    )


def _within(path: str, mount: str) -> bool:
    return path == mount or path.startswith(mount.rstrip("/") + "/")


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        pairs = ((f.name, getattr(value, f.name)) for f in fields(value))
        keep_empty = {"nvlink_peers"} if isinstance(value, GpuInfo) else set()
        if isinstance(value, Inventory):
            keep_empty = {"gpus", "block_devices", "mounts", "nics"}
        return {n: _plain(v) for n, v in pairs if v is not None and (v != () or n in keep_empty)}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value
