"""What this server is: processors, memory, devices, mounts, NICs, and the GPUs' facts."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable
from dataclasses import replace

from agent.host import block
from agent.host.cgroups import Cgroups
from agent.host.hostfs import HostFs, number_after
from agent.host.mounts import read_mounts, relevant
from agent.host.nics import ports
from agent.host.wsl import PLATFORM, is_wsl
from telemetry.inventory import BlockDevice, Cpu, GpuInfo, Inventory, Limits, Mount, Nic

_CPU = re.compile(r"cpu\d+")
_KIB = 1024
_MOST_DEVICES = 256
_MOST_LANES = 32


def take_inventory(
    hostfs: HostFs,
    gpus: Iterable[GpuInfo] = (),
    *,
    host: str | None = None,
    data_paths: Iterable[str] = (),
) -> Inventory:
    """The machine as /proc and /sys show it, with the GPUs that NVML told of.

    What a configuration declares (purpose, redundancy, ...) is for the caller to add. Raises
    nothing: what cannot be read is left out.
    """
    return Inventory(
        host=host or host_name(hostfs),
        platform=PLATFORM if is_wsl(hostfs) else None,
        cpu=cpu(hostfs),
        memory_bytes=memory_bytes(hostfs),
        gpus=tuple(with_slot(hostfs, gpu) for gpu in gpus),
        block_devices=block_devices(hostfs),
        mounts=mounts(hostfs, data_paths),
        nics=nics(hostfs),
        limits=None if (limits := Cgroups(hostfs).machine()) == Limits() else limits,
    )


def with_slot(hostfs: HostFs, gpu: GpuInfo) -> GpuInfo:
    """The GPU with what its slot allows: the port above it, as sysfs shows it.

    Not in a virtual machine, whose ports are made up, nor where the port says less than was seen.
    """
    if gpu.pcie is None or gpu.pci_bus_id is None or gpu.virtualization is not None:
        return gpu
    address = gpu.pci_bus_id.lower()
    if len(address) == len("00000000:10:00.0"):
        address = address[4:]  # NVML writes the domain with eight digits, sysfs with four
    place = hostfs.target(f"/sys/bus/pci/devices/{address}")
    port = place.rsplit("/", 1)[0]
    if not place.startswith("/sys/devices/"):
        return gpu
    speed = hostfs.maybe(f"{port}/max_link_speed")
    generation = block.GENERATION.get(speed.split(None, 1)[0]) if speed else None
    width = hostfs.number(f"{port}/max_link_width")
    pcie = gpu.pcie
    if generation is not None and generation >= (pcie.generation or 1):
        lowest = min(generation, pcie.slot_max_generation or generation)
        pcie = replace(pcie, slot_max_generation=lowest)
    if width is not None and (pcie.width or 1) <= width <= _MOST_LANES:
        pcie = replace(pcie, slot_max_width=width)
    return replace(gpu, pcie=pcie)


def host_name(hostfs: HostFs) -> str:
    """The kernel's name of the machine."""
    return hostfs.maybe("/proc/sys/kernel/hostname") or socket.gethostname()


def cpu(hostfs: HostFs) -> Cpu:
    """Sockets and cores from the topology of the processors that are online.

    A core is a distinct pair of package and core id: core ids begin anew in each socket, and
    /proc/cpuinfo's `cpu cores` is absent on ARM and wrong in many virtual machines.
    """
    base = "/sys/devices/system/cpu"
    packages: set[int] = set()
    cores: set[tuple[int, int]] = set()
    threads = 0
    known = True
    for name in hostfs.names(base):
        # A processor that is offline has no topology; cpu0 often has no `online` file.
        if not _CPU.fullmatch(name) or hostfs.number(f"{base}/{name}/online") == 0:
            continue
        threads += 1
        package = hostfs.number(f"{base}/{name}/topology/physical_package_id")
        core = hostfs.number(f"{base}/{name}/topology/core_id")
        if package is None or core is None or core < 0:
            known = False
            continue
        packages.add(package)
        cores.add((package, core))
    told = known and threads > 0
    return Cpu(
        model=_cpu_model(hostfs),
        # ARM servers without the firmware's topology table give every core package -1.
        sockets=len(packages) if told and min(packages) >= 0 else None,
        physical_cores=len(cores) if told else None,
        threads=threads or _threads_of_cpuinfo(hostfs),
    )


def memory_bytes(hostfs: HostFs) -> int | None:
    """MemTotal: what the kernel can use, a little less than what is plugged in."""
    try:
        kib = number_after(hostfs.bytes("/proc/meminfo"), b"MemTotal:")
    except OSError:
        return None
    return kib * _KIB if kib else None


def block_devices(hostfs: HostFs) -> tuple[BlockDevice, ...]:
    """Whole devices, see `agent.host.block.whole_devices`."""
    return tuple(
        BlockDevice(
            name=name,
            kind=block.kind(hostfs, name),
            size_bytes=block.size_bytes(hostfs, name),
            link_bytes_per_second=block.link_bytes_per_second(hostfs, name),
        )
        for name in block.whole_devices(hostfs)[:_MOST_DEVICES]
    )


def mounts(hostfs: HostFs, data_paths: Iterable[str] = ()) -> tuple[Mount, ...]:
    """The mounts that are sampled, named as their rows; several devices are joined by commas."""
    try:
        points = relevant(read_mounts(hostfs), data_paths)
    except OSError:
        return ()
    return tuple(
        Mount(
            path=point.name,
            fstype=point.fstype,
            source=point.source,
            device=None
            if point.network
            else ",".join(block.carriers(hostfs, point.number, point.source)) or None,
        )
        for point in points
    )


def nics(hostfs: HostFs) -> tuple[Nic, ...]:
    """Interfaces with a device behind them, and ports of InfiniBand and RoCE."""
    return tuple(
        Nic(
            name=port.name,
            kind=port.kind,
            speed_bits_per_second=port.speed_bits_per_second(hostfs),
            state=port.state(hostfs),
            interface=port.interface(hostfs),
            gid_type=port.gid_type(hostfs),
        )
        for port in ports(hostfs)
    )


def _cpu_model(hostfs: HostFs) -> str | None:
    try:
        text = hostfs.bytes("/proc/cpuinfo", limit=4096).decode("utf-8", "backslashreplace")
    except OSError:
        return None
    # ARM has no name of the model here; `Model` is what boards such as Jetson give.
    found = re.search(r"^(?:model name|cpu model|Model)\s*:\s*(\S.*)$", text, re.M)
    return " ".join(found.group(1).split()) if found else None


def _threads_of_cpuinfo(hostfs: HostFs) -> int | None:
    text = hostfs.maybe("/proc/cpuinfo") or ""
    count = len(re.findall(r"^processor\s*:", text, re.M))
    if count == 0 and not hostfs.root:
        return os.cpu_count()
    return count or None
