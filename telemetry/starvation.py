"""Whether a job's gaps coincide with signs of the host, and which resource they point to.

Needs a live training or fine-tuning job, gaps, and two chains of host signals that are on in the
gaps and not outside of them: P(signal | gap) >= 0.6 and >= 2 P(signal | busy). A signal of the
whole host that is always on says nothing about this job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from telemetry.chains import CHAINS
from telemetry.state import Cause
from telemetry.thresholds import Thresholds
from telemetry.window import Frame

Column = Sequence[float | None]

Levels = Mapping[str, Sequence[tuple[str, float]]]
"""Of each chain the metrics of a GPU's row that are its signals, with their level."""

_COLUMNS = tuple((c.name, f"gap_{c.name}_ratio", f"signal_{c.name}_ratio") for c in CHAINS)
_JOB_CHAINS = frozenset({"job_io", "write", "job_cpu"})


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was seen of the host beside the GPUs, over about the same windows."""

    host: Frame | None = None
    disks: tuple[Frame, ...] = ()
    mounts: tuple[Frame, ...] = ()


Witness = tuple[str, float, float | None]
"""A chain that is on in the gaps: its name, P(signal | gap) and P(signal | busy), None where
nothing compares."""


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
    levels: Sequence[tuple[Column, float]] = ()


@dataclass(slots=True)
class _Place:
    """A disk or a mount: where the GPU's windows find its own."""

    frame: Frame
    index: Sequence[int | None]
    fstype: str | None


class StarvationJudge:
    """Judges the windows of one GPU."""

    def __init__(
        self,
        gpu: Frame,
        surroundings: Surroundings,
        processor_share: Column | None,
        thresholds: Thresholds,
        levels: Levels,
    ) -> None:
        self._t = thresholds
        self._lines: dict[tuple[str, int, int | None], str] = {}
        host = surroundings.host
        to_host = None if host is None else aligned(gpu, host)
        self._chains: list[_Chain] = []
        for name, in_gaps, in_all in _COLUMNS:
            gaps = gpu.columns.get(in_gaps)
            if gaps is None or gaps.count(None) == len(gaps):
                continue
            column = None if host is None else host.columns.get(in_all)
            totals = None
            if column is not None and to_host is not None:
                whole = isinstance(to_host, range)
                totals = column if whole else [None if j is None else column[j] for j in to_host]
            seen = [
                (gpu.columns[m], level) for m, level in levels.get(name, ()) if m in gpu.columns
            ]
            self._chains.append(_Chain(name, gaps, totals, seen))
        self._processor_share = processor_share
        self._gpu, self._surroundings = gpu, surroundings

    @cached_property
    def _disks(self) -> list[_Place]:
        return [_Place(f, aligned(self._gpu, f), None) for f in self._surroundings.disks]

    @cached_property
    def _mounts(self) -> list[_Place]:
        return [_Place(f, aligned(self._gpu, f), _fstype(f)) for f in self._surroundings.mounts]

    @property
    def missing(self) -> tuple[str, ...]:
        """Chains that the windows say nothing about."""
        have = {chain.name for chain in self._chains}
        return tuple(in_gaps for name, in_gaps, _ in _COLUMNS if name not in have)

    def judge(self, i: int, gap: float, *, quiet: bool = False) -> Starvation | None:
        """The cause of the gaps of window `i` (`gap` is their share), None without two witnesses.

        `quiet` is a window in which the GPU did nothing at all: then only the job's own tasks can
        tell that it waits and did not simply stop.
        """
        t = self._t
        least, lift = t.signal_given_gap, t.signal_lift
        level_only = 1.0 - gap < t.gap_free_ratio
        known_io = known_pressure = False
        witnesses: list[Witness] = []
        for chain in self._chains:
            share = chain.gaps[i]
            if share is None:
                continue
            if chain.name == "job_io":
                known_io = True
            elif chain.name == "io_pressure":
                known_pressure = True
            in_gaps = share / gap
            if in_gaps < least:
                continue
            outside = None if level_only else self._outside(chain, i, gap, share, in_gaps)
            if outside is None or in_gaps >= lift * outside:
                witnesses.append((chain.name, in_gaps, outside))
        names = {witness[0] for witness in witnesses}
        if "cpu" in names and self._job_computes(i):
            witnesses.append(("job_cpu", 1.0, None))
            names.add("job_cpu")
        if len(names) < 2:
            return None
        compared = sum([witness[2] is not None for witness in witnesses])
        job_seen = not names.isdisjoint(_JOB_CHAINS)
        if compared == 0 and (quiet or known_io) and not job_seen:
            return None
        cause, place = self._cause(i, names, witnesses)
        if compared >= 2:
            confidence = 0.85 if compared > 2 else 0.8
        else:
            confidence = 0.7 if compared and job_seen else 0.6
        if level_only:
            confidence = min(confidence, 0.6)
        if not known_pressure:
            confidence *= 0.9
        if known_io and not job_seen:
            confidence *= 0.8
        return Starvation(cause, confidence, (*[self._line(w) for w in witnesses], *place))

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
        if "memory" in names:
            # Swapping and re-reading show on devices and in I/O pressure too.
            return Cause.HOST_MEMORY, ()
        if "write" in names:
            return Cause.CHECKPOINTING, ()
        if "mount" in names and _lift(witnesses, "mount") >= _lift(witnesses, "device"):
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

    def _line(self, witness: Witness) -> str:
        """A line for people, made once for each pair of percentages."""
        chain, in_gaps, outside = witness
        if chain == "job_cpu":
            return "the job's own processes keep the processors busy"
        key = (
            chain,
            round(100 * min(1.0, in_gaps)),
            None if outside is None else round(100 * outside),
        )
        line = self._lines.get(key)
        if line is None:
            line = f"gap_{chain}_ratio: on in {key[1]} % of the gaps"
            if outside is not None:
                line += f", in {key[2]} % outside of them"
            self._lines[key] = line
        return line


def aligned(frame: Frame, other: Frame) -> Sequence[int | None]:
    """For each window of a frame the place of the other's window with the same start; a range
    where both have the same windows."""
    if frame.start == other.start:
        return range(len(frame.start))
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


def _lift(witnesses: list[Witness], chain: str) -> float:
    """How much more often the chain is on in gaps than outside of them."""
    return sum(in_gaps - (outside or 0.0) for name, in_gaps, outside in witnesses if name == chain)
