"""Block devices: which are whole, what kind they are, what carries a file system."""

from __future__ import annotations

from agent.host.hostfs import HostFs
from agent.nvml.rates import pcie_ceiling

_SECTOR_BYTES = 512
"""/sys/block/*/size and stat count in these, whatever the device's own sectors."""

# Names of devices that hold no data of a job: optical drives, floppies.
_NO_STORAGE = ("sr", "fd")
# SCSI vendors and models behind which a virtual machine or a RAID controller hides the medium:
# what `rotational` says of them is a default, not a fact.
_HIDDEN_MEDIUM = (
    "qemu",
    "vmware",
    "vbox",
    "msft",
    "google",
    "xen",
    "virtual",
    "avago",
    "lsi",
    "perc",
    "megaraid",
    "logical volume",
)
# NVMe models that are a network disk behind an NVMe front: Amazon EBS, Google Persistent Disk and
# Hyperdisk, Azure remote disks (models as the providers' documentation of NVMe disks gives them).
_NETWORK_NVME = ("amazon elastic block store", "nvme_card-pd", "msft nvme accelerator")
# PCIe generation by the rate that sysfs prints in current_link_speed ("16.0 GT/s PCIe").
GENERATION = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}


def whole_devices(hostfs: HostFs) -> list[str]:
    """Names of the devices on which I/O ends: no partition, no dm, md, loop, ram or zram.

    What stacks on others (device mapper, RAID, bcache, loop) has no `device` link in sysfs; the
    hidden paths of a multipath NVMe namespace are counted by the namespace.
    """
    return [name for name in hostfs.names("/sys/block") if is_whole(hostfs, name)]


def is_whole(hostfs: HostFs, name: str) -> bool:
    """Whether I/O to this device of /sys/block ends there."""
    base = f"/sys/block/{name}"
    return (
        hostfs.exists(f"{base}/device")
        and not name.startswith(_NO_STORAGE)
        and hostfs.maybe(f"{base}/hidden") != "1"
        and bool(hostfs.number(f"{base}/size"))
    )


def size_bytes(hostfs: HostFs, name: str) -> int | None:
    """Size of a device, None where unknown."""
    sectors = hostfs.number(f"/sys/block/{name}/size")
    return sectors * _SECTOR_BYTES if sectors else None


def kind(hostfs: HostFs, name: str) -> str | None:
    """`nvme`, `ssd` or `hdd`; None where it cannot be told (a virtual or network disk, RAID).

    virtio and Xen disks say `rotational` 1 whatever carries them.
    """
    base = f"/sys/block/{name}"
    model = (hostfs.maybe(f"{base}/device/model") or "").lower()
    if name.startswith("nvme"):
        return None if any(part in model for part in _NETWORK_NVME) else "nvme"
    if not name.startswith("sd"):
        return None
    identity = f"{hostfs.maybe(f'{base}/device/vendor') or ''} {model}".lower()
    rotational = hostfs.number(f"{base}/queue/rotational")
    if rotational is None or any(part in identity for part in _HIDDEN_MEDIUM):
        return None
    return "hdd" if rotational else "ssd"


def link_bytes_per_second(hostfs: HostFs, name: str) -> float | None:
    """What the PCIe link of an NVMe device carries; None for others and where unknown."""
    if not name.startswith("nvme"):
        return None
    controller = f"/sys/block/{name}/device/device"
    speed = hostfs.maybe(f"{controller}/current_link_speed")
    width = hostfs.number(f"{controller}/current_link_width")
    generation = GENERATION.get(speed.split(None, 1)[0]) if speed else None
    return pcie_ceiling(generation, width)


def carriers(hostfs: HostFs, number: str, source: str) -> tuple[str, ...]:
    """The whole devices below a mounted file system, in order; none where there are none.

    `number` is its `major:minor` in mountinfo, `source` what was mounted. A file system that spans
    devices (btrfs) has a number of its own kind: then only the device named is known.
    """
    name = hostfs.target(f"/sys/dev/block/{number}").rsplit("/", 1)[-1]
    if not hostfs.exists(f"/sys/class/block/{name}"):
        link = hostfs.target(source) if source.startswith("/dev/") else ""
        name = link.rsplit("/", 1)[-1]
        if not name or not hostfs.exists(f"/sys/class/block/{name}"):
            return ()
    found: list[str] = []
    _descend(hostfs, name, found, 0)
    return tuple(sorted(found))


def _descend(hostfs: HostFs, name: str, found: list[str], depth: int) -> None:
    base = f"/sys/class/block/{name}"
    if hostfs.exists(f"{base}/partition"):
        # .../block/sda/sda1: the directory above a partition is its device.
        name = hostfs.target(base).rsplit("/", 2)[-2]
        base = f"/sys/class/block/{name}"
    slaves = hostfs.names(f"{base}/slaves")
    if slaves and depth < 8:
        for slave in slaves:
            _descend(hostfs, slave, found, depth + 1)
    elif name not in found and hostfs.exists(f"{base}/device"):
        found.append(name)
