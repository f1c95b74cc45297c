"""The cgroup of a process: what it may use, and what its tasks wait for.

Of cgroup v2 (https://docs.kernel.org/admin-guide/cgroup-v2.html) and, for limits, of v1
(https://docs.kernel.org/admin-guide/cgroup-v1/), whole or in the hybrid layout of systemd.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Iterator

from agent.host.hostfs import HostFs, KeptFile, number_after, unescape
from agent.host.mounts import MOUNTINFO
from telemetry.inventory import Limits

_LIMITS_EVERY = 60.0
_MOST_DEPTH = 16
_MOST_GROUPS = 64
_UNLIMITED_BYTES = 1 << 62
"""v1 writes "no limit" as the largest number of whole pages."""
_MICRO = 1e-6

_RESOURCES, _DEGREES = ("cpu", "io", "memory"), ("some", "full")
_V1 = (
    "cgroups of version 1 keep no pressure of their own"
    " (systemd.unified_cgroup_hierarchy=1 on the kernel's command line brings version 2)"
)
_ROOT = "the process is in the root cgroup: the host's own pressure holds"
NO_PSI = (
    "the kernel keeps no pressure stall information: boot with psi=1"
    " (needs Linux 4.20 with CONFIG_PSI)"
)
_UNSEEN = "its cgroup is not to be seen: the machine's /sys/fs/cgroup is not mounted here"


class _Group:
    """One cgroup."""

    __slots__ = ("files", "limits", "limits_at", "pressure", "pressure_at", "reason", "totals")

    def __init__(self) -> None:
        self.files: dict[str, KeptFile] = {}
        self.limits = Limits()
        self.limits_at: float | None = None
        self.pressure: dict[str, float] = {}
        self.pressure_at: float | None = None
        self.totals: dict[str, int] = {}
        self.reason: str | None = None


class Cgroups:
    """Limits and pressure of cgroups, each looked at now and then however many processes it has.

    A cgroup is known by the text of /proc/PID/cgroup.
    """

    def __init__(self, hostfs: HostFs, every: float = 15.0) -> None:
        """`every`: seconds over which a pressure is counted."""
        self._hostfs = hostfs
        self._every = every
        self._mounts: dict[str, tuple[str, str]] | None = None
        self._groups: dict[str, _Group] = {}

    def limits(self, text: str, now: float) -> Limits:
        """What the cgroup allows, read once a minute."""
        group = self._group(text)
        if group.limits_at is None or now - group.limits_at >= _LIMITS_EVERY:
            group.limits_at = now
            group.limits = self._read_limits(text)
        return group.limits

    def pressure(self, text: str, now: float) -> dict[str, float]:
        """By RESOURCE_DEGREE, the share of the time since the last reading in which some, or all,
        of the cgroup's tasks waited. Empty where that is not known, or not due yet."""
        group = self._group(text)
        if group.pressure_at == now:
            return group.pressure
        if group.pressure and now - (group.pressure_at or now) < self._every - 0.5:
            return {}
        elapsed = None if group.pressure_at is None else now - group.pressure_at
        group.pressure_at, before = now, group.totals
        group.totals = self._read_totals(text, group)
        group.pressure = {}
        for name, total in group.totals.items():
            if elapsed is not None and elapsed > 0 and total >= before.get(name, total + 1):
                group.pressure[name] = min(1.0, (total - before[name]) * _MICRO / elapsed)
        return group.pressure

    def reason(self, text: str) -> str | None:
        """Why the pressure of a cgroup is not known, if so."""
        return self._group(text).reason

    def machine(self) -> Limits:
        """What the outermost cgroup that is to be seen allows: in a container, the container's;
        nothing on a machine itself, whose root cgroup has no limits."""
        lines = [f"0:{name}:{root}" for name, (_, root) in self._mounted().items()]
        return self._read_limits("\n".join(lines))

    def forget(self, keep: frozenset[str]) -> None:
        """Drops all cgroups but these."""
        self._groups = {text: group for text, group in self._groups.items() if text in keep}

    def _group(self, text: str) -> _Group:
        group = self._groups.get(text)
        if group is None:
            if len(self._groups) >= _MOST_GROUPS:
                self._groups.clear()
            group = self._groups[text] = _Group()
        return group

    # Places

    def _mounted(self) -> dict[str, tuple[str, str]]:
        """By controller, where its hierarchy is mounted, and which part of it; "" is version 2."""
        if self._mounts is None:
            self._mounts = {}
            for line in (self._hostfs.maybe(MOUNTINFO) or "").splitlines():
                place, _, kind = line.partition(" - cgroup")
                fields, kinds = place.split(" "), kind.split(" ")
                if len(fields) < 5 or len(kinds) < 3:
                    continue
                where = (unescape(fields[4]), unescape(fields[3]))
                for controller in [""] if kinds[0] == "2" else kinds[2].split(","):
                    self._mounts.setdefault(controller, where)
        return self._mounts

    def _folders(self, text: str, controller: str) -> list[str]:
        """The cgroup's folder and those above it, from the innermost; none where not to be seen."""
        for line in text.splitlines():
            parts = line.split(":", 2)
            if len(parts) < 3 or controller not in parts[1].split(","):
                continue
            path, root = self._mounted().get(controller, ("", ""))
            inside = parts[2]
            if root not in ("/", ""):  # a container whose mounts show its own part alone
                if inside != root and not inside.startswith(root + "/"):
                    return []
                inside = inside[len(root) :]
            if not path or "/.." in inside:  # not mounted, or out of our cgroup namespace
                return []
            folder = posixpath.normpath(path + "/" + inside)
            found = [folder]
            while folder != path and len(found) < _MOST_DEPTH:
                folder = posixpath.dirname(folder)
                found.append(folder)
            return found
        return []

    # Readings

    def _read_limits(self, text: str) -> Limits:
        unified = self._folders(text, "")
        cores = [*self._quotas(unified), *self._old_quotas(self._folders(text, "cpu"))]
        highs = [self._number(f"{folder}/memory.high") for folder in unified]
        most = [self._number(f"{folder}/memory.max") for folder in unified]
        most += [
            self._number(f"{folder}/memory.limit_in_bytes")
            for folder in self._folders(text, "memory")
        ]
        return Limits(
            cpu_cores=min(cores, default=None),
            cpuset_threads=self._cpuset(unified, text),
            memory_max_bytes=min((n for n in most if n is not None), default=None),
            memory_high_bytes=min((n for n in highs if n is not None), default=None),
        )

    def _quotas(self, folders: list[str]) -> Iterator[float]:
        for folder in folders:
            fields = (self._hostfs.maybe(f"{folder}/cpu.max") or "").split()
            if len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit():
                yield int(fields[0]) / max(1, int(fields[1]))

    def _old_quotas(self, folders: list[str]) -> Iterator[float]:
        for folder in folders:
            quota = self._hostfs.number(f"{folder}/cpu.cfs_quota_us")
            period = self._hostfs.number(f"{folder}/cpu.cfs_period_us")
            if quota is not None and quota > 0 and period:
                yield quota / period

    def _cpuset(self, unified: list[str], text: str) -> int | None:
        """How many threads, where that is fewer than the machine has."""
        places = [f"{folder}/cpuset.cpus.effective" for folder in unified[:1]]
        for folder in self._folders(text, "cpuset")[:1]:
            places += [f"{folder}/cpuset.effective_cpus", f"{folder}/cpuset.cpus"]
        allowed = next((n for p in places if (n := self._listed(p))), None)
        online = self._listed("/sys/devices/system/cpu/online")
        return allowed if allowed is not None and (online is None or allowed < online) else None

    def _listed(self, path: str) -> int | None:
        """How many numbers a list such as `0-3,8` names."""
        text = self._hostfs.maybe(path)
        if text is None:
            return None
        total = 0
        for part in text.split(","):
            first, _, last = part.partition("-")
            if not first.isdigit() or (last and not last.isdigit()):
                return None
            total += int(last or first) - int(first) + 1
        return total

    def _number(self, path: str) -> int | None:
        number = self._hostfs.number(path)  # v2 says "max", which is no number
        return None if number is None or number >= _UNLIMITED_BYTES else number

    def _read_totals(self, text: str, group: _Group) -> dict[str, int]:
        """Microseconds of waiting so far, by RESOURCE_DEGREE."""
        folders = self._folders(text, "")
        group.reason = None
        if len(folders) < 2:
            old = self._folders(text, "memory")
            group.reason = _V1 if old else _ROOT if folders else _UNSEEN
            return {}
        totals: dict[str, int] = {}
        for resource in _RESOURCES:
            file = group.files.get(resource)
            if file is None:
                path = f"{folders[0]}/{resource}.pressure"
                file = group.files[resource] = self._hostfs.kept(path)
            try:
                data = file.record(512)
            except OSError as error:
                told = error.errno not in (errno.ENOENT, errno.EOPNOTSUPP)
                group.reason = f"{resource}.pressure: {error.strerror}" if told else NO_PSI
                continue
            for degree in _DEGREES:
                at = data.find(degree.encode() + b" ")
                total = number_after(data[at:], b"total=") if at >= 0 else None
                if total is not None:
                    totals[f"{resource}_{degree}"] = total
        return totals
