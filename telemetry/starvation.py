"""Whether a job's gaps coincide with signs of the host, and which resource they point to.

Needs a live training or fine-tuning job, gaps, and two chains of host signals that are on in the
gaps and not outside of them: P(signal | gap) >= 0.6 and >= 2 P(signal | busy). A signal of the
whole host that is always on says nothing about this job.

A sign of the job itself that is always on does: loaders fill a queue of bounded length, so that
loaders which never rest cannot keep up, whatever the GPU does at the moment. Then what is always
on beside them counts too, judged on its level. Waits that are shorter than a second leave no gap
to compare with: only loaders that never rest tell them from a GPU that is slow on its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from telemetry.chains import CHAINS
from telemetry.loaders import Column, Loaders
from telemetry.places import Places, Surroundings, aligned
from telemetry.state import Cause, Place
from telemetry.thresholds import Thresholds
from telemetry.window import Frame

_COLUMNS = tuple(
    (c.name, f"gap_{c.name}_ratio", f"signal_{c.name}_ratio", c.of_job) for c in CHAINS
)
_LOADERS = frozenset({"job", "job_cpu"})
"""Witnesses that are no chain of their own: what the job's loaders do all the time."""
_JOB_CHAINS = frozenset({"job_io", "write", *_LOADERS})


class Witness(NamedTuple):
    """A chain that is on in the gaps: P(signal | gap) and P(signal | busy), None where nothing
    compares; `steady` where it is as much on outside of them."""

    chain: str
    in_gaps: float
    outside: float | None
    steady: bool = False


@dataclass(frozen=True, slots=True)
class Starvation:
    """The answer for one window. `communication` is told and is no starvation."""

    cause: Cause
    confidence: float
    evidence: tuple[str, ...]
    place: Place | None = None


@dataclass(slots=True)
class _Chain:
    name: str
    gaps: Column
    totals: Column | None


class StarvationJudge:
    """Judges the windows of one GPU."""

    def __init__(
        self,
        gpu: Frame,
        surroundings: Surroundings,
        processor_share: Column | None,
        thresholds: Thresholds,
    ) -> None:
        self._t = thresholds
        self._lines: dict[tuple[str, int, int | None], str] = {}
        host = surroundings.host
        to_host = None if host is None else aligned(gpu, host)
        self._chains: list[_Chain] = []
        for name, in_gaps, in_all, of_job in _COLUMNS:
            gaps = gpu.columns.get(in_gaps)
            if gaps is None or gaps.count(None) == len(gaps):
                continue
            totals: Column | None = None
            if of_job:
                totals = gpu.columns.get(in_all)
            elif host is not None and to_host is not None:
                column = host.columns.get(in_all)
                if column is not None and isinstance(to_host, range):
                    totals = column
                elif column is not None:
                    totals = [None if j is None else column[j] for j in to_host]
            self._chains.append(_Chain(name, gaps, totals))
        self._places = Places(gpu, surroundings, thresholds)
        self.loaders = Loaders(gpu, processor_share, thresholds)
        self.restless = self.loaders.windows()
        """Windows in which the job's loaders never rest."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Chains that the windows say nothing about."""
        have = {chain.name for chain in self._chains}
        return tuple(in_gaps for name, in_gaps, _, _ in _COLUMNS if name not in have)

    def judge(self, i: int, gap: float, *, quiet: bool = False) -> Starvation | None:
        """The cause of the gaps of window `i` (`gap` is their share), None without two witnesses.

        `quiet` is a window in which the GPU did nothing at all: then only the job's own tasks can
        tell that it waits and did not simply stop.
        """
        level_only = 1.0 - gap < self._t.gap_free_ratio
        witnesses = self._witnesses(i, gap, level_only)
        names = {witness.chain for witness in witnesses}
        if "nic" in names and names <= {"nic", "cpu", "job_cpu"}:
            exchanged = None if quiet else self._exchange(i, witnesses)
            if exchanged is not None:
                return exchanged
        if len(names) < 2:
            return None
        known_io = self._known("job_io", i)
        compared = sum([w.outside is not None and not w.steady for w in witnesses])
        job_seen = not names.isdisjoint(_JOB_CHAINS)
        if compared == 0 and (quiet or known_io) and not job_seen:
            return None
        cause, place, line = self._cause(i, names, witnesses)
        if compared >= 2:
            confidence = 0.85 if compared > 2 else 0.8
        else:
            confidence = 0.7 if compared and job_seen else 0.6
        if level_only:
            confidence = min(confidence, 0.6)
        if not self._known("io_pressure", i):
            confidence *= 0.9
        if known_io and not job_seen:
            confidence *= 0.8
        lines = self._said(i, witnesses)
        return Starvation(cause, confidence, (*lines, *((line,) if line else ())), place)

    def judge_short(self, i: int) -> Starvation | None:
        """The cause of waits within the seconds of window `i`, by what is on all the time; None
        without two witnesses, the job's own loaders among them."""
        if i not in self.restless:
            return None
        steady = [
            Witness(chain.name, share, share, True)
            for chain in self._chains
            if (share := None if chain.totals is None else chain.totals[i]) is not None
            and share >= self._t.steady_ratio
        ]
        witnesses = self._beside_loaders(i, steady)
        names = {witness.chain for witness in witnesses}
        if len(names) < 2:
            return None
        cause, place, line = self._cause(i, names, witnesses)
        confidence = 0.6 if self._known("io_pressure", i) else 0.54
        lines = [
            self.loaders.told(i)
            if w.chain in _LOADERS
            else f"signal_{w.chain}_ratio: on in {100 * w.in_gaps:.0f} %"
            for w in witnesses
        ]
        return Starvation(cause, confidence, (*lines, *((line,) if line else ())), place)

    def _beside_loaders(self, i: int, steady: list[Witness]) -> list[Witness]:
        """What is always on and counts, since the job's loaders never rest: signs of I/O beside
        loaders that wait for it, full processors beside those that compute. A checkpoint stops
        the GPU now and then: what always writes is none."""
        waits, computes = self.loaders.wait(i), self.loaders.compute(i)
        found = [
            witness
            for witness in steady
            if witness.chain != "write" and (computes if witness.chain == "cpu" else waits)
        ]
        names = {witness.chain for witness in found}
        if found and waits and "job_io" not in names:
            found.append(Witness("job", 1.0, None))
        if computes and "cpu" in names:
            found.append(Witness("job_cpu", 1.0, None))
        return found

    def _witnesses(self, i: int, gap: float, level_only: bool) -> list[Witness]:
        t = self._t
        found: list[Witness] = []
        steady: list[Witness] = []
        for chain in self._chains:
            share = chain.gaps[i]
            if share is None:
                continue
            total = None if level_only or chain.totals is None else chain.totals[i]
            if total is not None:
                # The job's tasks are looked at now and then: by chance more often in gaps, or less,
                # than there are gaps. Both shares bound what they can be together (Fréchet).
                share = min(max(share, total + gap - 1.0), gap, total)
            in_gaps = share / gap
            if in_gaps < t.signal_given_gap:
                continue
            outside = None
            if total is not None:
                outside = min(1.0, max(0.0, total - share) / (1.0 - gap))
            if outside is None or in_gaps >= t.signal_lift * outside:
                found.append(Witness(chain.name, in_gaps, outside))
            elif total is not None and total >= t.steady_ratio:
                steady.append(Witness(chain.name, in_gaps, outside, True))
        found += self._beside_loaders(i, steady)
        names = {witness.chain for witness in found}
        computes = self.loaders.compute(i) or self.loaders.fill(i)
        if computes and "cpu" in names and "job_cpu" not in names:
            found.append(Witness("job_cpu", 1.0, None))
        return found

    def _known(self, chain: str, i: int) -> bool:
        return any(c.name == chain and c.gaps[i] is not None for c in self._chains)

    def _exchange(self, i: int, witnesses: list[Witness]) -> Starvation | None:
        """Gaps while a full link carries as much out as in: ranks wait for each other."""
        told = self._places.both_ways(i)
        if told is None:
            return None
        lines = (*self._said(i, witnesses), told[1])
        return Starvation(Cause.COMMUNICATION, 0.7, lines, told[0])

    def _cause(
        self, i: int, names: set[str], witnesses: list[Witness]
    ) -> tuple[Cause, Place | None, str | None]:
        if "memory" in names:
            # Swapping and re-reading show on devices and in I/O pressure too.
            return Cause.HOST_MEMORY, None, None
        if "write" in names:
            return Cause.CHECKPOINTING, *self._places.written(i)
        if "mount" in names and _lift(witnesses, "mount") >= _lift(witnesses, "device"):
            return self._remote(i, Cause.NETWORK_STORAGE)
        if "device" in names:
            past = self._places.mount(i, certain=False)
            if past is not None and past[0] is Cause.FUSE_OR_OBJECT_STORAGE:
                return past  # next to nothing comes to the job from the device that is slow
            return Cause.LOCAL_STORAGE, *self._places.disk(i)
        if "nic" in names and names & {"io_pressure", "job_io"}:
            return self._remote(i, Cause.NETWORK_STORAGE)
        if "job_cpu" in names and not names & {"io_pressure", "job_io", "nic"}:
            return Cause.CPU_DATALOADER, None, None
        if names & {"io_pressure", "job_io"}:
            return self._remote(i, Cause.UNKNOWN)
        return Cause.UNKNOWN, None, None

    def _remote(self, i: int, otherwise: Cause) -> tuple[Cause, Place | None, str | None]:
        """Network or FUSE, by the mount that the job reads from."""
        found = self._places.mount(i, certain=otherwise is not Cause.UNKNOWN)
        return (otherwise, None, None) if found is None else found

    def _said(self, i: int, witnesses: list[Witness]) -> list[str]:
        return [self.loaders.told(i) if w.chain in _LOADERS else self._line(w) for w in witnesses]

    def _line(self, witness: Witness) -> str:
        """A line for people, made once for each pair of percentages."""
        chain, in_gaps, outside, _ = witness
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


def _lift(witnesses: list[Witness], chain: str) -> float:
    """How much more often the chain is on in gaps than outside of them."""
    return sum(w.in_gaps - (w.outside or 0.0) for w in witnesses if w.chain == chain)


__all__ = ["Column", "Starvation", "StarvationJudge", "Surroundings", "Witness"]
