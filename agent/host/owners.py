"""Whose a process is: its user, and the unit, container, job or pod that its cgroup names."""

from __future__ import annotations

import pwd
import re
from dataclasses import dataclass

from agent.background import Background
from agent.host.hostfs import HostFs

# Forms of cgroup paths, v1 and v2, with either driver. Sources: kubelet's cgroup names
# (kubernetes.io/docs/concepts/architecture/cgroups, systemd driver: dashes as underscores), the
# runtimes' scope names (docker-ID.scope, cri-containerd-ID.scope, crio-ID.scope, libpod-ID.scope,
# nerdctl-ID.scope), slurm.schedmd.com/cgroups.html and /cgroup_v2.html, systemd.unit(5).
_POD = re.compile(
    r"kubepods.*?pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?![0-9a-f])"
)
_CONTAINER = re.compile(r"[/:-]([0-9a-f]{64})(?:\.scope)?(?=/|$)")
_NAMED_CONTAINER = re.compile(r"/(?:lxc\.payload[./]|lxc/|machine-)([^/]+?)(?:\.scope)?(?=/|$)")
_JOB = re.compile(r"/slurm[^/]*/(?:.*/)?job_(\d+)(?=/|$)")
_UNIT = re.compile(r"/([^/]+\.service)(?=/|$)")
_USER_MANAGER = re.compile(r"user@\d+\.service")

_POD_LOGS = "/var/log/pods"
"""kubelet keeps a directory NAMESPACE_NAME_UID there for each pod of this machine."""


@dataclass(frozen=True, slots=True)
class Owner:
    """`kind` is kubernetes_pod, slurm_job, container, systemd_unit or user."""

    name: str
    kind: str


def owner_of_cgroup(text: str) -> Owner | None:
    """The owner that /proc/PID/cgroup names, None where a plain session or nothing is in it.

    Of several the outermost that people know by name: a container of a pod is the pod's, a
    container within a Slurm job is the job's, a container started by a unit is the container.
    """
    paths = [line.split(":", 2)[2] for line in text.splitlines() if line.count(":") >= 2]
    for pattern, kind in ((_POD, "kubernetes_pod"), (_JOB, "slurm_job")):
        for path in paths:
            found = pattern.search(path)
            if found:
                return Owner(found.group(1).replace("_", "-"), kind)
    for path in paths:
        found = _CONTAINER.search(path)
        if found:
            return Owner(found.group(1)[:12], "container")
    for path in paths:
        found = _NAMED_CONTAINER.search(path)
        if found:
            return Owner(found.group(1), "container")
    for path in paths:
        units = [unit for unit in _UNIT.findall(path) if not _USER_MANAGER.fullmatch(unit)]
        if units:
            return Owner(units[0], "systemd_unit")
    return None


class Owners:
    """Names of users and owners, each looked up once."""

    def __init__(self, hostfs: HostFs) -> None:
        self._hostfs = hostfs
        self._users: dict[int, str] = {}
        self._passwd = ""
        # A name that is not in /etc/passwd may come from a directory server, which can hang.
        self._directory: Background[int, str] = Background(lambda uid: pwd.getpwuid(uid).pw_name)
        self._pods: dict[str, str] = {}

    def user(self, uid: int, now: float) -> str:
        """The user's name; the number until a directory server has told it."""
        name = self._users.get(uid) or self._directory.answers.get(uid)
        if name is not None:
            return name
        text = self._hostfs.maybe("/etc/passwd") or ""
        if text != self._passwd:
            self._passwd = text
            for line in text.splitlines():
                fields = line.split(":")
                if len(fields) > 2 and fields[2].isdigit():
                    self._users.setdefault(int(fields[2]), fields[0])
        if uid in self._users:
            return self._users[uid]
        if self._hostfs.root == "" and uid not in self._directory.reasons:
            self._directory.ask((uid,), now)
        return str(uid)

    def owner(self, cgroup: str, user: str | None) -> Owner | None:
        """Whose a process is; the user's (if known) where its cgroup names nobody else."""
        found = owner_of_cgroup(cgroup)
        if found is None:
            return None if user is None else Owner(user, "user")
        if found.kind == "kubernetes_pod":
            return Owner(self._pod(found.name), found.kind)
        return found

    def _pod(self, uid: str) -> str:
        """`namespace/name` of a pod where its log folder tells it, else its id."""
        if uid not in self._pods:
            for folder in self._hostfs.names(_POD_LOGS):
                parts = folder.split("_")
                if len(parts) == 3:
                    self._pods[parts[2]] = f"{parts[0]}/{parts[1]}"
            self._pods = dict(list(self._pods.items())[-1024:])
        return self._pods.get(uid, uid)
