"""What a GPU's process is: command without secrets, user, owner, kind of workload, model."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.host.hostfs import HostFs, decode
from agent.host.model_config import CONFIG
from agent.host.model_files import WEIGHTS, YAML, Weights, held_weights, written
from agent.host.owners import Owners
from agent.host.processes import Stat, parse_stat
from telemetry.workload import Kind, Match, Signatures, redact

_AGAIN = 60.0
"""Seconds after which the command is read again: servers set their title once they are up."""
_COMMAND_LENGTH = 512
_COMMAND_READ = 8192
_ANCESTORS = 4
MODEL_SOURCE = "command"
_LOADS = 15
"""Looks, a minute apart, in which a process is believed to load its weights still."""
_UNSAID = frozenset({Kind.FINETUNING, Kind.TRAINING_OR_FINETUNING})
_ADVICE = (
    "{}: looking into other users' processes needs CAP_SYS_PTRACE"
    " (a systemd drop-in with AmbientCapabilities=CAP_SYS_PTRACE)"
)


@dataclass(slots=True)
class _Known:
    started: int
    name: str
    read_at: float
    command: str
    cgroup: str
    texts: dict[str, str] = field(default_factory=dict)
    looks: int = 0
    weights: Weights | None = None


class Identities:
    """Texts of processes, read when one is first seen and when its title changes."""

    def __init__(self, hostfs: HostFs, owners: Owners) -> None:
        self._hostfs = hostfs
        self._owners = owners
        self._signatures: Signatures | None = None
        self._known: dict[int, _Known] = {}
        self.reasons: dict[str, str] = {}
        """What cannot be known of some process, and why."""

    def texts(self, pid: int, stat: Stat, now: float) -> dict[str, str]:
        """Texts of `gpu_process` for a process that is there, its state and pid apart."""
        known = self._known.get(pid)
        if known is not None and known.started == stat.started:
            if stat.dead or (known.name == stat.name and now - known.read_at < _AGAIN):
                return known.texts
            command = self._command(pid)
            known.read_at, known.name = now, stat.name
            if command == known.command and "owner" in known.texts:
                known.cgroup = self._cgroup(pid)
                known.texts |= self._whose(pid, known.cgroup, now)
                self._look_at_files(pid, known)
                return known.texts
        command = self._command(pid)
        cgroup = self._cgroup(pid)
        texts = {"name": stat.name, **self._whose(pid, cgroup, now)}
        if command:
            texts["command"] = redact(command)[:_COMMAND_LENGTH]
        match = self._match(command, stat.parent)
        if match is not None:
            texts["workload"], texts["tool"] = match.kind.value, match.tool
            if match.model is not None:
                texts["model"], texts["model_source"] = match.model, MODEL_SOURCE
        known = self._known[pid] = _Known(stat.started, stat.name, now, command, cgroup, texts)
        self._read_yaml(pid, command, match, texts)
        self._look_at_files(pid, known)
        return texts

    def weights_bytes(self, pid: int) -> int | None:
        """The size of the weight files that the process was seen to hold, None if of none."""
        known = self._known.get(pid)
        return None if known is None or known.weights is None else known.weights.size_bytes

    def cgroup(self, pid: int) -> str:
        """The text of /proc/PID/cgroup as last read; empty where it could not be."""
        known = self._known.get(pid)
        return "" if known is None else known.cgroup

    def _read_yaml(
        self, pid: int, command: str, match: Match | None, texts: dict[str, str]
    ) -> None:
        """The model and the method that the command leaves to a file."""
        if match is None or (match.model is not None and match.kind not in _UNSAID):
            return
        try:
            said = written(self._hostfs, pid, command)
        except OSError as error:
            self._refused(pid, error)
            return
        if said is None:
            return
        if said.model is not None and "model" not in texts:
            texts["model"], texts["model_source"] = said.model, YAML
        if said.method is not None and match.kind in _UNSAID:
            texts["workload"] = said.method.value

    def _look_at_files(self, pid: int, known: _Known) -> None:
        """The weights that it holds: while it starts, since most let go of them afterwards."""
        if known.looks >= _LOADS:
            return
        known.looks += 1
        try:
            held = held_weights(self._hostfs, pid)
        except OSError as error:
            known.looks = _LOADS
            self._refused(pid, error)
            return
        if held is None:
            return
        if known.weights is None or held.size_bytes > known.weights.size_bytes:
            known.weights = held
        named = [(held.model, WEIGHTS)]
        if held.config is not None:
            known.texts |= held.config.texts()
            named.append((held.config.model, CONFIG))
        for model, source in named:
            if model is not None and "model" not in known.texts:
                known.texts["model"], known.texts["model_source"] = model, source

    def _refused(self, pid: int, error: OSError) -> None:
        if isinstance(error, PermissionError):
            why = _ADVICE.format(f"process {pid}: {error.strerror}")
            self.reasons["gpu_process weights_bytes"] = why

    def last(self, pid: int) -> dict[str, str]:
        """What was known of a process that is no longer there."""
        known = self._known.get(pid)
        return known.texts if known is not None else {}

    def forget(self, keep: frozenset[int]) -> None:
        """Drops all processes but these."""
        self._known = {pid: known for pid, known in self._known.items() if pid in keep}

    def _command(self, pid: int) -> str:
        try:
            raw = self._hostfs.bytes(f"/proc/{pid}/cmdline", _COMMAND_READ)
        except OSError:
            return ""
        # A title set by the program (setproctitle) is one text padded with NULs.
        return decode(raw.rstrip(b"\0").replace(b"\0", b" ")).strip()

    def _cgroup(self, pid: int) -> str:
        return self._hostfs.maybe(f"/proc/{pid}/cgroup") or ""

    def _whose(self, pid: int, cgroup: str, now: float) -> dict[str, str]:
        uid = self._uid(pid)
        user = self._owners.user(uid, now) if uid is not None else None
        owner = self._owners.owner(cgroup, user)
        texts = {} if user is None else {"user": user}
        if owner is not None:
            texts |= {"owner": owner.name, "owner_kind": owner.kind}
        return texts

    def _uid(self, pid: int) -> int | None:
        status = self._hostfs.maybe(f"/proc/{pid}/status") or ""
        line = status.partition("\nUid:")[2].split(None, 1)
        return int(line[0]) if line and line[0].isdigit() else None

    def _match(self, command: str, parent: int) -> Match | None:
        """What the process says of its work, else the nearest of its ancestors that says it.

        An engine's worker process bears a title; who started it names the model.
        """
        if self._signatures is None:
            self._signatures = Signatures.load()
        match = self._signatures.match(command) if command else None
        for _ in range(_ANCESTORS):
            if parent <= 1 or (match is not None and match.model is not None):
                break
            above = self._signatures.match(self._command(parent))
            if above is not None and (match is None or above.kind is match.kind):
                match = above
            try:
                parent = parse_stat(self._hostfs.bytes(f"/proc/{parent}/stat")).parent
            except (OSError, ValueError, IndexError):
                break
        return match
