"""The /proc and /sys of a whole machine from a short description (`machine.toml`).

Counters stand at round numbers; `after` is one second later: each disk has read `read_bytes` in
`reads` requests of 0.5 ms, each interface received `rx_bytes`, the processors were half busy.
"""

from __future__ import annotations

from typing import Any

from tests.collectors.test_processes import process

_GB = 1_000_000_000
_LIMITS = ("cpu.max", "memory.max", "memory.high", "cpuset.cpus.effective")


def tree(machine: dict[str, Any], *, after: bool) -> str:
    """The files as `tests.collectors.tree.plant` wants them."""
    files = {**_kernel(machine, after)}
    if not after:
        files |= _processors(machine["cpu"])
    for number, disk in enumerate(machine.get("disk", ())):
        files |= _disk(disk, number, after)
    for number, nic in enumerate(machine.get("nic", ())):
        files |= _nic(nic, number, after)
    if not after:
        mounts = ["25 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"]
        mounts += [_mount(m, n) for n, m in enumerate(machine.get("mount", ()))]
        files["/proc/self/mountinfo"] = "\n".join(mounts) + "\n"
        files |= {f"{m['path'].rstrip('/')}/.kept": "" for m in machine.get("mount", ())}
        for slot in machine.get("slot", ()):
            files |= _slot(slot)
    groups = [{"path": p["cgroup"]} for p in machine.get("process", ()) if "cgroup" in p]
    for group in (*groups, *machine.get("cgroup", ())):
        files |= _cgroup(group, after)
    text = "".join(
        f"--- {path}{content}\n" if content.startswith(" -> ") else f"--- {path}\n{content}"
        for path, content in files.items()
    )
    if not after:
        for told in machine.get("process", ()):
            text += _process(told)
    return text


def _kernel(machine: dict[str, Any], after: bool) -> dict[str, str]:
    busy = 500 if after else 0
    total, available = machine["memory_kib"], machine["memory_kib"] * 3 // 4
    files = {
        "/proc/stat": f"cpu  {1000 + busy} 0 1000 {8000 + busy} 100 0 0 0 0 0\n",
        "/proc/vmstat": f"nr_free_pages 100\npgmajfault {5 + 2 * after}\npswpin 0\n",
    }
    if not after:
        files |= {
            "/proc/loadavg": "1.50 1.00 0.50 2/900 9000\n",
            "/proc/meminfo": f"MemTotal: {total} kB\nMemFree: 100 kB\n"
            f"MemAvailable: {available} kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
            "/proc/self/ns/pid": f" -> pid:[{machine.get('pid_namespace', 4026531836)}]",
            "/proc/sys/kernel/osrelease": machine.get("osrelease", "6.8.0-48-generic") + "\n",
            "/proc/1/stat": "1 (systemd) S 0\n",
            "/etc/passwd": "root:x:0:0::/root:/bin/sh\nml:x:1000:1000::/home/ml:/bin/sh\n",
        }
    if machine.get("pressure", True):
        for resource in ("cpu", "io", "memory"):
            line = f"avg10=0.00 avg60=0.00 avg300=0.00 total={1000 + 50_000 * after}"
            files[f"/proc/pressure/{resource}"] = f"some {line}\nfull {line}\n"
    return files


def _processors(cpu: dict[str, Any]) -> dict[str, str]:
    label = "model name" if cpu.get("model") else "CPU part"
    value = cpu.get("model", "0xd4f")
    files = {"/proc/cpuinfo": f"processor\t: 0\n{label}\t: {value}\n"}
    number = 0
    for _ in range(cpu.get("threads_per_core", 1)):
        for socket in range(cpu["sockets"]):
            for core in range(cpu["cores_per_socket"]):
                base = f"/sys/devices/system/cpu/cpu{number}"
                if cpu.get("topology", True):
                    files[f"{base}/topology/physical_package_id"] = f"{socket}\n"
                    files[f"{base}/topology/core_id"] = f"{core}\n"
                else:
                    files[f"{base}/online"] = "1\n"
                number += 1
    return files


def _disk(disk: dict[str, Any], number: int, after: bool) -> dict[str, str]:
    name = disk["name"]
    if name.startswith("nvme"):
        top = f"/sys/devices/pci0000:40/0000:4{number:x}:00.0"
        place, device = f"{top}/nvme/{name[:-2]}/{name}", f" -> ../../{name[:-2]}"
    elif name.startswith("vd"):
        top = f"/sys/devices/pci0000:00/0000:00:{number + 4:02x}.0"
        place, device = f"{top}/virtio{number}/block/{name}", f" -> ../../../virtio{number}"
    else:
        top = f"/sys/devices/pci0000:00/0000:00:17.0/ata{number}/host0/target0:0:0/0:0:0:0"
        place, device = f"{top}/block/{name}", " -> ../../../0:0:0:0"
    reads, size = disk.get("reads", 0) * after, disk.get("read_bytes", 0) * after
    counts = (1000 + reads, 0, 8000 + size // 512, 500 + reads // 2, 0, 0, 0, 0, 0, reads // 2, 0)
    files = {f"{place}/stat": " ".join(map(str, counts)) + "\n"}
    if after:
        return files
    files |= {
        f"/sys/block/{name}": f" -> ..{place.removeprefix('/sys')}",
        f"/sys/class/block/{name}": f" -> ../..{place.removeprefix('/sys')}",
        f"/sys/dev/block/{8 + number}:0": f" -> ../..{place.removeprefix('/sys')}",
        f"{place}/device": device,
        f"{place}/size": f"{disk['gigabytes'] * _GB // 512}\n",
        f"{place}/queue/rotational": f"{int(disk.get('rotational', name.startswith('vd')))}\n",
    }
    if name.startswith("nvme"):
        files |= {
            f"{top}/nvme/{name[:-2]}/model": f"{disk['model']}\n",
            f"{top}/nvme/{name[:-2]}/device": " -> ../.." + top.removeprefix(top.rsplit("/", 1)[0]),
            f"{top}/current_link_speed": f"{disk.get('speed', '16.0')} GT/s PCIe\n",
            f"{top}/current_link_width": "4\n",
        }
        files[f"{top}/nvme/{name[:-2]}/device"] = f" -> ../../../{top.rsplit('/', 1)[1]}"
    elif not name.startswith("vd"):
        files |= {f"{top}/vendor": f"{disk.get('vendor', 'ATA')}\n"}
        files |= {f"{top}/model": f"{disk['model']}\n"}
    return files


def _nic(nic: dict[str, Any], number: int, after: bool) -> dict[str, str]:
    received = 10_000_000 + nic.get("rx_bytes", 0) * after
    if "gigabits" in nic and nic.get("infiniband"):
        base = f"/sys/class/infiniband/{nic['name']}/ports/1"
        files = {f"{base}/counters/port_rcv_data": f"{received // 4}\n"}
        if not after:
            files |= {
                f"{base}/counters/port_xmit_data": "2500000\n",
                f"{base}/link_layer": "InfiniBand\n",
                f"{base}/rate": f"{nic['gigabits']} Gb/sec (4X NDR)\n",
                f"{base}/state": "4: ACTIVE\n",
            }
        return files
    base = f"/sys/class/net/{nic['name']}"
    files = {f"{base}/statistics/rx_bytes": f"{received}\n"}
    if not after:
        files |= {
            f"{base}/device": f" -> ../../../0000:61:00.{number}",
            f"{base}/type": "1\n",
            f"{base}/speed": f"{nic['gigabits'] * 1000 if 'gigabits' in nic else -1}\n",
            f"{base}/operstate": "up\n",
            f"{base}/statistics/tx_bytes": "10000000\n",
        }
    return files


def _mount(mount: dict[str, Any], number: int) -> str:
    place = f"{8 + mount['disk']}:0" if "disk" in mount else f"0:{50 + number}"
    source, kind = mount["source"], mount["fstype"]
    return f"{30 + number} 1 {place} / {mount['path']} rw,relatime - {kind} {source} rw"


def _slot(slot: dict[str, Any]) -> dict[str, str]:
    """A GPU's place on the bus, and the port above it."""
    port = f"/sys/devices/pci0000:{slot['bus']}/0000:{slot['bus']}:01.0"
    return {
        f"/sys/bus/pci/devices/0000:{slot['address']}": f" -> ../../..{port.removeprefix('/sys')}"
        f"/0000:{slot['address']}",
        f"{port}/max_link_speed": f"{slot['speed']} GT/s PCIe\n",
        f"{port}/max_link_width": f"{slot['width']}\n",
    }


def _cgroup(group: dict[str, Any], after: bool) -> dict[str, str]:
    """A cgroup of version 2, whose tasks wait for I/O in `io_wait` of the second."""
    base = f"/sys/fs/cgroup{group['path']}"
    totals = {"cpu": 0, "io": int(1e6 * group.get("io_wait", 0.0)) * after, "memory": 0}
    files = {
        f"{base}/{resource}.pressure": f"some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n"
        f"full avg10=0.00 avg60=0.00 avg300=0.00 total={total // 2}\n"
        for resource, total in totals.items()
    }
    if not after:
        files |= {f"{base}/{name}": f"{group[name]}\n" for name in _LIMITS if name in group}
    return files


def _process(told: dict[str, Any]) -> str:
    files = process(
        told["pid"],
        told["command"],
        cgroup="0::" + told.get("cgroup", "/"),
        name=told["name"],
        parent=told.get("parent", 1),
    )
    files += f"--- /proc/{told['pid']}/fd/0 -> /dev/null\n"
    for number, path in enumerate(told.get("open", ())):
        files += f"--- /proc/{told['pid']}/fd/{number + 3} -> {path}\n"
        files += f"--- /proc/{told['pid']}/root{path}\n{'x' * 100}\n"
    return files + f"--- /proc/{told['pid']}/maps\n"
