"""Whether a job's gaps coincide with signs of the host, and which resource they point to.

Needs a live training or fine-tuning job, gaps, and two chains of host signals that are on in the
gaps and not outside of them: P(signal | gap) >= 0.6 and >= 2 P(signal | busy). A signal of the
whole host that is always on says nothing about this job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from telemetry.chains import CHAINS
from telemetry.signals import Signals
from telemetry.state import Cause
from telemetry.thresholds import Thresholds
from telemetry.window import Frame

Column = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was seen of the host beside the GPUs, over about the same windows."""

    host: Frame | None = None
    disks: tuple[Frame, ...] = ()
    mounts: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Witness:
    """A chain of signals that is on in the gaps. `outside` is None where nothing compares."""

    chain: str
    in_gaps: float
    outside: float | None

    @property
    def lift(self) -> float:
        """How much more often in gaps."""
        return self.in_gaps - (self.outside or 0.0)


@dataclass(frozen=True, slots=True)
class Starvation:
    """The answer for one window."""

    cause: Cause
    confidence: float
    evidence: tuple[str, ...]


@dataclass(slots=True)
class _Chain:
    name: str
    gaps: Column
    totals: Column | None
    levels: tuple[tuple[Column, float], ...] = ()


@dataclass(slots=True)
class _Place:
    """A disk or a mount: where the GPU's windows find its own."""

    frame: Frame
    index: list[int | None]
    fstype: str | None = None
    columns: dict[str, Column] = field(default_factory=dict)


class StarvationJudge:
    """Judges the windows of one GPU."""

    def __init__(
        self,
        gpu: Frame,
        surroundings: Surroundings,
        processor_share: Column | None,
        thresholds: Thresholds,
        signals: Signals,
    ) -> None:
        self._t = thresholds
        self._gpu = gpu
        host = surroundings.host
        to_host = None if host is None else aligned(gpu, host)
        self._chains: list[_Chain] = []
        for chain in CHAINS:
            gaps = gpu.columns.get(f"gap_{chain.name}_ratio")
            if gaps is None or all(value is None for value in gaps):
                continue
            totals = None
            if host is not None and to_host is not None:
                column = host.columns.get(f"signal_{chain.name}_ratio")
                if column is not None:
                    totals = [None if j is None else column[j] for j in to_host]
            levels = tuple(
                (gpu.columns[s.metric], s.at_least)
                for s in signals.signals
                if s.chain == chain.name and s.measurement == "gpu" and s.metric in gpu.columns
            )
            self._chains.append(_Chain(chain.name, gaps, totals, levels))
        self._processor_share = processor_share
        self._disks = [_Place(f, aligned(gpu, f)) for f in surroundings.disks]
        self._mounts = [_Place(f, aligned(gpu, f), _fstype(f)) for f in surroundings.mounts]

    @property
    def missing(self) -> tuple[str, ...]:
        """Chains that the windows say nothing about."""
        have = {chain.name for chain in self._chains}
        return tuple(f"gap_{c.name}_ratio" for c in CHAINS if c.name not in have)

    def knows(self, i: int) -> bool:
        """Whether any chain was read in window `i`."""
        return any(chain.gaps[i] is not None for chain in self._chains)

    def judge(self, i: int, gap: float, *, quiet: bool = False) -> Starvation | None:
        """The cause of the gaps of window `i` (`gap` is their share), None without two witnesses.

        `quiet` is a window in which the GPU did nothing at all: then only the job's own tasks can
        tell that it waits and did not simply stop.
        """
        known: set[str] = set()
        witnesses: list[Witness] = []
        level_only = 1.0 - gap < self._t.gap_free_ratio
        for chain in self._chains:
            share = chain.gaps[i]
            if share is None:
                continue
            known.add(chain.name)
            in_gaps = min(1.0, share / gap)
            if in_gaps < self._t.signal_given_gap:
                continue
            outside = None if level_only else self._outside(chain, i, gap, share, in_gaps)
            if outside is None or in_gaps >= self._t.signal_lift * outside:
                witnesses.append(Witness(chain.name, in_gaps, outside))
        names = {w.chain for w in witnesses}
        if "cpu" in names and self._job_computes(i):
            witnesses.append(Witness("job_cpu", 1.0, None))
            names.add("job_cpu")
        if len(names) < 2:
            return None
        compared = sum(w.outside is not None for w in witnesses)
        job_seen = "job_io" in names or "write" in names or "job_cpu" in names
        if (level_only or compared == 0) and (quiet or "job_io" in known) and not job_seen:
            return None
        cause, place = self._cause(i, names, witnesses)
        if compared >= 2:
            confidence = 0.85 if compared > 2 else 0.8
        else:
            confidence = 0.7 if compared and job_seen else 0.6
        if level_only:
            confidence = min(confidence, 0.6)
        if "io_pressure" not in known:
            confidence *= 0.9
        if "job_io" in known and not job_seen:
            confidence *= 0.8
        lines = [_line(w) for w in witnesses]
        return Starvation(cause, confidence, (*lines, *place))

    def _outside(
        self, chain: _Chain, i: int, gap: float, share: float, in_gaps: float
    ) -> float | None:
        """P(signal | busy), or the most that it can be; None where nothing tells."""
        if chain.totals is not None:
            total = chain.totals[i]
            return None if total is None else min(1.0, max(0.0, total - share) / (1.0 - gap))
        bound = 0.0
        for column, level in chain.levels:
            mean = column[i]
            if mean is None:
                return None
            # Markov: what the mean leaves for gap-free seconds, at the signal's level.
            bound = max(bound, max(0.0, mean - share * level) / ((1.0 - gap) * level))
        # A bound can show that the signal is rarer outside of gaps, never that it is not.
        return bound if chain.levels and in_gaps >= self._t.signal_lift * bound else None

    def _job_computes(self, i: int) -> bool:
        share = None if self._processor_share is None else self._processor_share[i]
        return share is not None and share >= self._t.job_processor_share

    def _cause(
        self, i: int, names: set[str], witnesses: list[Witness]
    ) -> tuple[Cause, tuple[str, ...]]:
        lifts = {w.chain: w.lift for w in witnesses}
        if "memory" in names:
            # Swapping and re-reading show on devices and in I/O pressure too.
            return Cause.HOST_MEMORY, ()
        if "write" in names:
            return Cause.CHECKPOINTING, ()
        if "mount" in names and lifts["mount"] >= lifts.get("device", 0.0):
            return self._remote(i, Cause.NETWORK_STORAGE)
        if "device" in names:
            return Cause.LOCAL_STORAGE, self._busiest_disk(i)
        if "nic" in names and names & {"io_pressure", "job_io"}:
            return self._remote(i, Cause.NETWORK_STORAGE)
        if "job_cpu" in names and not names & {"io_pressure", "job_io", "nic"}:
            return Cause.CPU_DATALOADER, ()
        if names & {"io_pressure", "job_io"}:
            return self._remote(i, Cause.UNKNOWN)
        return Cause.UNKNOWN, ()

    def _remote(self, i: int, otherwise: Cause) -> tuple[Cause, tuple[str, ...]]:
        """Network or FUSE, by the mount that most is read from."""
        best: tuple[float, _Place] | None = None
        for place in self._mounts:
            read = _cell(place, "read_bytes_per_second", i)
            if read is None and place.fstype is not None and otherwise is not Cause.UNKNOWN:
                read = 0.0
            if read is not None and (best is None or read > best[0]):
                best = read, place
        if best is None:
            return otherwise, ()
        read, place = best
        kind = self._mount_kind(place.fstype)
        if kind is None or (
            otherwise is Cause.UNKNOWN and read < self._t.mount_read_bytes_per_second
        ):
            return otherwise, ()
        wait = _cell(place, "read_round_trip_seconds", i)
        text = f"mount {place.frame.key[1]} ({place.fstype}): read_bytes_per_second {read:.3g}"
        if wait is not None:
            text += f", read_round_trip_seconds {wait:.3g}"
        return kind, (text,)

    def _mount_kind(self, fstype: str | None) -> Cause | None:
        if fstype is None or fstype in self._t.local_fuse_file_systems:
            return None
        if fstype.startswith("fuse"):
            return Cause.FUSE_OR_OBJECT_STORAGE
        return Cause.NETWORK_STORAGE if fstype in self._t.network_file_systems else None

    def _busiest_disk(self, i: int) -> tuple[str, ...]:
        best: tuple[float, _Place] | None = None
        for place in self._disks:
            wait = _cell(place, "read_await_seconds", i)
            if wait is not None and (best is None or wait > best[0]):
                best = wait, place
        if best is None:
            return ()
        read = _cell(best[1], "read_bytes_per_second", i)
        text = f"disk {best[1].frame.key[1]}: read_await_seconds {best[0]:.3g}"
        return (text if read is None else f"{text}, read_bytes_per_second {read:.3g}",)


def aligned(frame: Frame, other: Frame) -> list[int | None]:
    """For each window of a frame the place of the other's window with the same start."""
    if frame.start == other.start:
        return list(range(len(frame.start)))
    places = {start: j for j, start in enumerate(other.start)}
    return [places.get(start) for start in frame.start]


def _cell(place: _Place, name: str, i: int) -> float | None:
    j = place.index[i]
    column = place.frame.columns.get(name)
    return None if j is None or column is None else column[j]


def _fstype(frame: Frame) -> str | None:
    for texts in reversed(frame.texts):
        if "fstype" in texts:
            return texts["fstype"]
    return None


def _line(witness: Witness) -> str:
    if witness.chain == "job_cpu":
        return "the job's own processes keep the processors busy"
    text = f"gap_{witness.chain}_ratio: on in {witness.in_gaps:.0%} of the gaps"
    return text if witness.outside is None else f"{text}, in {witness.outside:.0%} outside of them"
