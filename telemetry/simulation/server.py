"""The server of a scenario: what it is made of, and its inventory."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from telemetry.inventory import BlockDevice, Cpu, GpuInfo, Inventory, Mount, Nic, Pcie
from telemetry.simulation.hardware import Card, Drive, hardware
from telemetry.simulation.quantity import Dimension
from telemetry.simulation.reader import Table

# Of what a link carries, the payload: 1448 of 1538 bytes of each full Ethernet frame are data of
# a TCP stream with time stamps (RFC 894, 791, 7323), and 1514 are what the interface counts.
PAYLOAD_RATIO = 1448 / 1538
COUNTED_PER_PAYLOAD = 1514 / 1448

NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "glusterfs"})


@dataclass(frozen=True, slots=True)
class SimulatedDisk:
    """A block device."""

    name: str
    kind: str
    size_bytes: int
    drive: Drive


@dataclass(frozen=True, slots=True)
class SimulatedNic:
    """A network interface."""

    name: str
    kind: str
    speed_bits_per_second: int
    state: str

    @property
    def capacity(self) -> float:
        """Payload bytes per second."""
        return self.speed_bits_per_second / 8 * PAYLOAD_RATIO


@dataclass(frozen=True, slots=True)
class SimulatedMount:
    """A file system, carried by a disk or reached through a NIC.

    `limit` is what its server gives at most; `round_trip_seconds` is that of a quiet network.
    """

    path: str
    fstype: str
    source: str
    size_bytes: int
    used_bytes: int
    disk: SimulatedDisk | None
    nic: SimulatedNic | None
    limit: float | None
    round_trip_seconds: float

    @property
    def remote(self) -> bool:
        """Whether it is a network or FUSE file system."""
        return self.fstype in NETWORK_FILE_SYSTEMS or self.fstype.startswith("fuse.")

    def capacity(self, read_size_bytes: float) -> float:
        """Bytes per second that can be read from it in reads of that size."""
        if self.disk is not None:
            rate = self.disk.drive.capacity(read_size_bytes)
        else:
            assert self.nic is not None
            rate = self.nic.capacity
        return min(rate, self.limit) if self.limit is not None else rate

    @property
    def write_capacity(self) -> float:
        """Bytes per second that can be written to it."""
        if self.disk is not None:
            return self.disk.drive.write_bytes_per_second
        return self.capacity(1 << 20)


@dataclass(frozen=True, slots=True)
class SimulatedGpu:
    """One card in its slot."""

    index: int
    uuid: str
    card: Card


@dataclass(frozen=True, slots=True)
class Server:
    """What the server is, and what its owner declares about it."""

    host: str
    cpu: Cpu
    memory_bytes: int
    system_memory_bytes: int
    gpus: tuple[SimulatedGpu, ...]
    disks: dict[str, SimulatedDisk]
    mounts: dict[str, SimulatedMount]
    nics: dict[str, SimulatedNic]
    swap: SimulatedDisk | None
    power_feed_watts: float | None
    purpose: str | None
    redundancy: str | None
    standby: bool | None
    pinned_phases: tuple[str, ...]
    data_paths: tuple[str, ...]
    model: str | None

    @property
    def threads(self) -> int:
        return self.cpu.threads or 1

    def inventory(self) -> Inventory:
        """What an agent on this server would say of it."""
        return Inventory(
            host=self.host,
            cpu=self.cpu,
            memory_bytes=self.memory_bytes,
            gpus=tuple(self._gpu(gpu) for gpu in self.gpus),
            block_devices=tuple(
                BlockDevice(disk.name, disk.kind, disk.size_bytes) for disk in self.disks.values()
            ),
            mounts=tuple(
                Mount(m.path, m.fstype, m.source, m.disk.name if m.disk else None)
                for m in self.mounts.values()
            ),
            nics=tuple(
                Nic(n.name, n.kind, n.speed_bits_per_second, n.state) for n in self.nics.values()
            ),
            power_feed_watts=self.power_feed_watts,
            purpose=self.purpose,
            redundancy=self.redundancy,
            standby=self.standby,
            pinned_phases=self.pinned_phases,
            data_paths=self.data_paths,
            model=self.model,
        )

    def _gpu(self, gpu: SimulatedGpu) -> GpuInfo:
        card = gpu.card
        return GpuInfo(
            uuid=gpu.uuid,
            index=gpu.index,
            name=card.name,
            memory_bytes=card.memory_bytes,
            power_limit_watts=card.power_limit_watts,
            compute_capability=card.compute_capability,
            pci_device_id=card.pci_device_id,
            pci_bus_id=f"00000000:{0x10 + gpu.index * 8:02X}:00.0",
            pcie=Pcie(*(card.pcie_generation, 16) * 3),
            nvlink_peers=self._peers(gpu),
        )

    def _peers(self, gpu: SimulatedGpu) -> tuple[str, ...]:
        def linked(other: SimulatedGpu) -> bool:
            pair = gpu.index // 2 == other.index // 2
            return gpu.card.nvlink == "all" or (gpu.card.nvlink == "pairs" and pair)

        same = (other for other in self.gpus if other.card == gpu.card and other != gpu)
        return tuple(other.uuid for other in same if linked(other))


def read_server(table: Table) -> Server:
    """The server of its table. Raises ScenarioError."""
    host = table.text("host")
    disks = {name: _disk(name, inner) for name, inner in table.named_tables("disks")}
    nics = {name: _nic(name, inner) for name, inner in table.named_tables("nics")}
    mounts = {path: _mount(path, t, disks, nics) for path, t in table.named_tables("mounts")}
    swap = table.text_or_none("swap")
    if swap is not None and swap not in disks:
        table.fail("swap", f"one of the disks {', '.join(disks)}")
    cpu = table.table("cpu")
    server = Server(
        host=host,
        cpu=Cpu(
            model=cpu.text("model"),
            sockets=cpu.whole("sockets", at_least=1),
            physical_cores=cpu.whole("physical_cores", at_least=1),
            threads=cpu.whole("threads", at_least=1),
        ),
        memory_bytes=int(table.quantity("memory", Dimension.BYTES)),
        system_memory_bytes=int(table.quantity("system_memory", Dimension.BYTES, 8 * 2.0**30)),
        gpus=_gpus(host, table),
        disks=disks,
        mounts=mounts,
        nics=nics,
        swap=disks[swap] if swap is not None else None,
        power_feed_watts=(
            table.number("power_feed_watts") if table.has("power_feed_watts") else None
        ),
        purpose=table.text_or_none("purpose"),
        redundancy=table.text_or_none("redundancy"),
        standby=table.flag("standby", False) if table.has("standby") else None,
        pinned_phases=table.texts("pinned_phases"),
        data_paths=table.texts("data_paths"),
        model=table.text_or_none("model"),
    )
    cpu.close()
    table.close()
    return server


def _gpus(host: str, table: Table) -> tuple[SimulatedGpu, ...]:
    cards = hardware().cards
    found: list[SimulatedGpu] = []
    for entry in table.listed_tables("gpus"):
        card = cards[entry.text("name", among=tuple(cards))]
        for _ in range(entry.whole("count", 1, at_least=1)):
            index = len(found)
            name = uuid.uuid5(uuid.NAMESPACE_DNS, f"{index}.{host}.gpu.invalid")
            found.append(SimulatedGpu(index, f"GPU-{name}", card))
        entry.close()
    return tuple(found)


def _disk(name: str, table: Table) -> SimulatedDisk:
    drives = hardware().drives
    kind = table.text("kind", among=tuple(drives))
    size = int(table.quantity("size", Dimension.BYTES))
    usual = drives[kind]
    drive = replace(
        usual,
        read_bytes_per_second=table.quantity(
            "read", Dimension.BYTES_PER_SECOND, usual.read_bytes_per_second
        ),
        write_bytes_per_second=table.quantity(
            "write", Dimension.BYTES_PER_SECOND, usual.write_bytes_per_second
        ),
    )
    table.close()
    return SimulatedDisk(name, kind, size, drive)


def _nic(name: str, table: Table) -> SimulatedNic:
    nic = SimulatedNic(
        name,
        table.text("kind", "ethernet", among=("ethernet", "infiniband")),
        int(table.quantity("speed", Dimension.BITS_PER_SECOND)),
        table.text("state", "up", among=("up", "down")),
    )
    table.close()
    return nic


def _mount(
    path: str,
    table: Table,
    disks: dict[str, SimulatedDisk],
    nics: dict[str, SimulatedNic],
) -> SimulatedMount:
    carrier = table.text("on", among=(*disks, *nics))
    disk = disks.get(carrier)
    size = table.quantity("size", Dimension.BYTES, disk.size_bytes if disk else 20e12)
    mount = SimulatedMount(
        path=path,
        fstype=table.text("fstype", "ext4"),
        source=table.text("source", f"/dev/{carrier}"),
        size_bytes=int(size),
        used_bytes=int(table.quantity("used", Dimension.BYTES, size * 0.4)),
        disk=disk,
        nic=nics.get(carrier),
        limit=(table.quantity("limit", Dimension.BYTES_PER_SECOND) if table.has("limit") else None),
        round_trip_seconds=table.quantity("round_trip", Dimension.SECONDS, 0.0008),
    )
    table.close()
    return mount
