"""The mount table: which file systems matter to a job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agent.host.hostfs import HostFs, decode, unescape

MOUNTINFO = "/proc/self/mountinfo"

# fmt: off
_NETWORK = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs2", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "virtiofs", "wekafs",
})
_LOCAL = frozenset({
    "bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "fuseblk", "jfs", "ntfs3",
    "reiserfs", "xfs", "zfs",
})
# FUSE file systems of desktops and container engines, which hold no data of their own.
_FUSE_WITHOUT_DATA = frozenset({
    "fuse.fuse-overlayfs", "fuse.gvfsd-fuse", "fuse.lxcfs", "fuse.portal", "fuse.snapfuse",
    "fuse.squashfuse", "fuse.vmware-vmblock",
})
# fmt: on
_OUT_OF_THE_WAY = ("/boot", "/efi", "/snap", "/var/lib/docker", "/var/lib/containers", "/run")
_POD = re.compile(r"(/kubelet/pods/)[^/]+/")
# Of volumes that Kubernetes makes, and of the folders in which its drivers keep them.
_VOLUME = re.compile(r"(?:pvc-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class MountPoint:
    """One mounted file system. `number` is `major:minor`, `root` what part of it is mounted."""

    path: str
    fstype: str
    source: str
    number: str
    root: str
    copy: int = 1
    """Which of several that would have the same name."""

    @property
    def network(self) -> bool:
        """Whether a server elsewhere carries it."""
        return self.fstype in _NETWORK

    @property
    def fuse(self) -> bool:
        """Whether a program of this machine carries it, often an object store's client."""
        return self.fstype.startswith("fuse.") and self.fstype not in _FUSE_WITHOUT_DATA

    @property
    def name(self) -> str:
        """The path as a tag. Volumes of pods are named without their ids and those of the pods,
        of which there is no end: `/var/lib/kubelet/pods/*/volumes/kubernetes.io~csi/*/mount (2)`.
        """
        if "/kubelet/" not in self.path:
            return self.path
        name = _VOLUME.sub("*", _POD.sub(r"\1*/", self.path))
        return name if self.copy == 1 else f"{name} ({self.copy})"


def read_mounts(hostfs: HostFs) -> list[MountPoint]:
    """The mounts of our mount namespace (man 5 proc_pid_mountinfo). Raises OSError."""
    return parse_mountinfo(decode(hostfs.bytes(MOUNTINFO)))


def parse_mountinfo(text: str) -> list[MountPoint]:
    """The mounts in the text of a mountinfo, less the lines that do not fit the form."""
    mounts = []
    for line in text.splitlines():
        left, found, right = line.partition(" - ")
        place, kind = left.split(" "), right.split(" ")
        if found and len(place) >= 6 and len(kind) >= 2:
            mounts.append(
                MountPoint(
                    path=unescape(place[4]),
                    fstype=kind[0],
                    source=unescape(kind[1]),
                    number=place[2],
                    root=unescape(place[3]),
                )
            )
    return mounts


def relevant(
    mounts: Sequence[MountPoint], data_paths: Iterable[str] = (), *, most: int = 32
) -> list[MountPoint]:
    """The mounts that are sampled, each file system once, by path.

    Those that hold a declared data path come first, whatever they are; then network and FUSE
    mounts; then local file systems on block devices. At most `most`.
    """
    chosen: dict[str, MountPoint] = {}
    taken: set[tuple[str, str]] = set()

    def take(mount: MountPoint) -> None:
        identity = (mount.number, mount.fstype)
        if len(chosen) >= most or identity in taken:
            return
        while mount.name in chosen and mount.name != mount.path:
            mount = replace(mount, copy=mount.copy + 1)
        if mount.name not in chosen:
            chosen[mount.name] = mount
            taken.add(identity)

    for path in data_paths:
        holder = holding(mounts, path)
        if holder is not None:
            take(holder)
    by_length = sorted(mounts, key=lambda mount: (len(mount.path), mount.path))
    for mount in by_length:
        if mount.network or mount.fuse:
            take(mount)
    for mount in by_length:
        # A bind mount shows a part of a file system that is counted where it is whole; btrfs
        # subvolumes are parts too, and often the only ones mounted.
        whole = mount.root == "/" or mount.fstype == "btrfs"
        if mount.fstype in _LOCAL and whole and not _is_under(mount.path, _OUT_OF_THE_WAY):
            take(mount)
    return sorted(chosen.values(), key=lambda mount: mount.path)


def holding(mounts: Iterable[MountPoint], path: str) -> MountPoint | None:
    """The mount that a path lies on: of the longest mount points, the last mounted."""
    found: MountPoint | None = None
    for mount in mounts:
        below = path == mount.path or path.startswith(mount.path.rstrip("/") + "/")
        if below and (found is None or len(mount.path) >= len(found.path)):
            found = mount
    return found


def _is_under(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(place + "/") for place in places)
