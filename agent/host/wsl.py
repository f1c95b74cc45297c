"""The Windows Subsystem for Linux (version 2): a virtual machine whose GPU is Windows's.

The driver is that of Windows; /dev/dxg leads to it, and its library lies in /usr/lib/wsl/lib
(https://docs.nvidia.com/cuda/wsl-user-guide). Distributions share one machine, each in pid and
cgroup namespaces of its own.
"""

from __future__ import annotations

from agent.host.hostfs import HostFs

PLATFORM = "wsl"
TOLD = (
    "Windows Subsystem for Linux: the GPU's driver is that of Windows, which lists no other"
    " distribution's and no Windows process, and not the memory of any; disks and processors are"
    " those of a virtual machine"
)
PROCESSES = (
    "in the Windows Subsystem for Linux a distribution has a pid namespace of its own, and the"
    " driver's list is not of it"
)
CURE = (
    "install NVIDIA's driver on Windows, not in the distribution; libnvidia-ml.so.1 must be found"
    " in /usr/lib/wsl/lib (a line of /etc/ld.so.conf.d, then ldconfig), and /dev/dxg must be there"
)


def is_wsl(hostfs: HostFs) -> bool:
    """Whether this is such a distribution: by the kernel's name, or the way to Windows's driver."""
    release = hostfs.maybe("/proc/sys/kernel/osrelease") or ""
    return "microsoft" in release.lower() or hostfs.exists("/dev/dxg")
