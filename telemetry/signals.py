"""Marks each second: is the GPU in a gap, and which host signals are on while it is?

Alignment in time is counted here, at one second, where it still exists; windows keep the shares.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from telemetry.chains import CHAINS
from telemetry.window import Key, Sample


@dataclass(frozen=True, slots=True)
class Signal:
    """A metric of a measurement that, from a level on, is a sign of its chain.

    `since_last` is a rate over the seconds since the reading before, rather than a level of its
    own second.
    """

    chain: str
    measurement: str
    metric: str
    at_least: float
    source: str
    since_last: bool = False


@dataclass(frozen=True, slots=True)
class Signals:
    """What counts as a gap, and the signals."""

    gap_metric: str
    gap_below: float
    signals: tuple[Signal, ...]
    plan: dict[str, list[Signal]] = field(init=False, repr=False, compare=False)
    """The signals by measurement."""

    def __post_init__(self) -> None:
        plan: dict[str, list[Signal]] = defaultdict(list)
        for signal in self.signals:
            plan[signal.measurement].append(signal)
        object.__setattr__(self, "plan", dict(plan))

    @classmethod
    def load(cls) -> Signals:
        """The signals that Talla ships (`signals.toml`)."""
        text = resources.files("telemetry").joinpath("signals.toml").read_text("utf-8")
        return cls.parse(tomllib.loads(text))

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Signals:
        """Signals from their TOML table. Raises ValueError for a chain that does not exist."""
        known = {chain.name for chain in CHAINS}
        signals = tuple(Signal(**entry) for entry in data["signal"])
        for signal in signals:
            if signal.chain not in known:
                raise ValueError(f"signals.toml: no chain is called {signal.chain!r}")
        return cls(data["gap"]["metric"], data["gap"]["below"], signals)


class Marker:
    """Marks the samples of one host, in order."""

    def __init__(self, signals: Signals) -> None:
        self._metric, self._below = signals.gap_metric, signals.gap_below
        self._plan = {
            measurement: [(s.chain, s.metric, s.at_least, s.since_last) for s in of_it]
            for measurement, of_it in signals.plan.items()
        }
        self._gaps: dict[Key, deque[bool]] = {}
        """Of each GPU whether the seconds were gaps, since its rates were last read."""

    def mark(self, sample: Sample) -> None:
        """Adds `signal_*` to the host's row, `gap_*` and the job's `signal_*` to each GPU's.

        A chain none of whose metrics was read is absent, not zero; so are the gap shares of a
        GPU whose activity was not read.
        """
        host: dict[str, float] = {}
        gpus, hosts = [], []
        plan = self._plan
        for key, row in sample.rows.items():
            measurement = key[0]
            if measurement == "gpu":
                gpus.append((key, row))
                continue
            if measurement == "host":
                hosts.append(row)
            for chain, metric, at_least, _ in plan.get(measurement, ()):
                level = row.get(metric)
                if level is not None:
                    if level >= at_least:
                        host[chain] = 1.0
                    elif chain not in host:
                        host[chain] = 0.0
        for row in hosts:
            for chain, on in host.items():
                row[_SIGNAL_FIELDS[chain]] = on
        for key, row in gpus:
            self._mark_gpu(key, row, host)

    def _mark_gpu(self, key: Key, row: dict[str, float], host: Mapping[str, float]) -> None:
        activity = row.get(self._metric)
        if activity is None:
            return
        gap = activity < self._below
        row["gap_ratio"] = 1.0 if gap else 0.0
        row["gap_lost_ratio"] = 1.0 - activity if gap else 0.0
        for chain, on in host.items():
            row[_GAP_FIELDS[chain]] = on if gap else 0.0
        gaps = self._gaps.get(key)
        if gaps is None:
            gaps = self._gaps[key] = deque(maxlen=_LONGEST)
        gaps.append(gap)
        rated = False
        for chain, metric, at_least, since_last in self._plan.get("gpu", ()):
            level = row.get(metric)
            if level is None:
                continue
            rated = rated or since_last
            name = _GAP_FIELDS[chain]
            if level >= at_least:
                row[_SIGNAL_FIELDS[chain]] = 1.0
                row[name] = sum(gaps) / len(gaps) if since_last else row["gap_ratio"]
            elif name not in row:
                row[_SIGNAL_FIELDS[chain]] = row[name] = 0.0
        if rated:
            gaps.clear()


_LONGEST = 10
"""Seconds; the processes are read every 5."""
_SIGNAL_FIELDS = {chain.name: f"signal_{chain.name}_ratio" for chain in CHAINS}
_GAP_FIELDS = {chain.name: f"gap_{chain.name}_ratio" for chain in CHAINS}
