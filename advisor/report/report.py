"""What a report tells: the servers that were assessed, and when it was made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import cached_property

from advisor.assessment import Assessment, Period
from advisor.finding import Basis, Dimension, Finding, Verdict
from advisor.profiles import Profiles
from advisor.report.past import Past
from telemetry.inventory import GpuInfo
from telemetry.states import State

WORST_FIRST = (
    Verdict.UNDER,
    Verdict.OVER,
    Verdict.IDLE,
    Verdict.ABSTAIN,
    Verdict.ADVICE,
    Verdict.RIGHT,
)


@dataclass(frozen=True)
class Server:
    """One server of the report. `number` counts from 1 in the order of the report.

    `past` is what the last report before this one said of it; None where there was none, or where
    it is not known. Times are told by the clock of `zone`.
    """

    assessment: Assessment
    number: int
    profiles: Profiles
    past: Past | None = None
    zone: tzinfo = UTC

    @property
    def host(self) -> str:
        """The server's name."""
        return self.assessment.host

    @property
    def anchor(self) -> str:
        """The id of its part of a page: of the number, since a name may hold anything."""
        return f"server-{self.number}"

    @cached_property
    def overall(self) -> Finding | None:
        """The verdict on the server as a whole."""
        return next((f for f in self.assessment.findings if f.dimension is Dimension.OVERALL), None)

    @property
    def verdict(self) -> Verdict:
        """The overall verdict; abstain where there is none."""
        return Verdict.ABSTAIN if self.overall is None else self.overall.verdict

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of the dimensions, the worst first."""
        found = [f for f in self.assessment.findings if f.dimension is not Dimension.OVERALL]
        return tuple(
            sorted(
                found,
                key=lambda f: (WORST_FIRST.index(f.verdict), f.basis is Basis.DOCUMENTED),
            )
        )

    @cached_property
    def states(self) -> dict[State, float]:
        """GPU-hours of the told period by state."""
        return added(h.hours for h in self.assessment.hours)

    @property
    def lost(self) -> float:
        """GPU-hours lost to starvation, within the hours of starved windows."""
        return sum(h.lost_hours for h in self.assessment.hours)

    @property
    def worked(self) -> float:
        """GPU-hours that computed: busy windows, and what starved ones had left."""
        return worked(self.states, self.lost)

    def gpu(self, uuid: str) -> GpuInfo | None:
        """What is known of a GPU."""
        return next((g for g in self.assessment.inventory.gpus if g.uuid == uuid), None)


@dataclass(frozen=True)
class Report:
    """All that a report tells. `made` is Unix time, `version` that of Talla."""

    servers: tuple[Server, ...]
    profiles: Profiles
    made: float
    version: str

    @classmethod
    def of(
        cls,
        assessments: Iterable[Assessment],
        profiles: Profiles,
        *,
        made: float,
        version: str,
        zone: tzinfo = UTC,
    ) -> Report:
        """A report of the assessments, the servers that need attention first."""
        servers = [Server(a, 0, profiles) for a in assessments]
        servers.sort(key=lambda s: (WORST_FIRST.index(s.verdict), s.host))
        numbered = (replace(s, number=i, zone=zone) for i, s in enumerate(servers, 1))
        return cls(tuple(numbered), profiles, made, version)

    def after(self, past: Mapping[str, Past]) -> Report:
        """The same report, which knows what the last one said of each host."""
        servers = tuple(replace(s, past=past.get(s.host)) for s in self.servers)
        return replace(self, servers=servers)

    @cached_property
    def told(self) -> Period | None:
        """The whole time that is told, over all servers; None where nothing was seen of any."""
        periods = [p for s in self.servers if (p := s.assessment.told).until > p.since]
        if not periods:
            return None
        return Period(min(p.since for p in periods), max(p.until for p in periods))

    @cached_property
    def states(self) -> dict[State, float]:
        """GPU-hours of all servers by state."""
        return added(s.states for s in self.servers)


def worked(states: dict[State, float], lost: float) -> float:
    """GPU-hours that computed: busy windows, and those of starved windows that were not lost."""
    return states.get(State.BUSY, 0.0) + max(0.0, states.get(State.STARVED, 0.0) - lost)


def added(parts: Iterable[dict[State, float]]) -> dict[State, float]:
    """The sums of hours by state."""
    total: dict[State, float] = {}
    for part in parts:
        for state, hours in part.items():
            total[state] = total.get(state, 0.0) + hours
    return total
