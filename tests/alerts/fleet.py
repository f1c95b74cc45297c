"""Simulated healthy servers at 10-second windows, fast enough for hundreds of GPU-days.

A situation's 300 seconds are drawn once through the real aggregator, as `telemetry.simulation`
does for its history, but kept at both tiers; a window is such a draw with the jitter, the energy
and the texts of its time. `holes` and blips are added as agents have them: restarts, missed
seconds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from telemetry.aggregate import Aggregator
from telemetry.event import Severity
from telemetry.signals import Signals
from telemetry.simulation import Scenario, load_scenario
from telemetry.simulation.jitter import Jitter
from telemetry.simulation.moment import Situation
from telemetry.simulation.timeline import Timeline
from telemetry.window import Key, Row, Sample, Window
from tests.alerts.staged import START, Told, judged

HEALTHY = ("training_fixed", "chatbot", "vision", "finetuning", "chatbot_70b_l40s")
STEP = 300
DAY = 86_400
Drawn = list[tuple[int, int, dict[Key, dict[str, float]]]]


class Fleet:
    """The windows of one scenario's server."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._scenario = scenario
        self._signals = Signals.load()
        self._timeline = Timeline(scenario, START)
        self._jitter = Jitter(seed, 2 * scenario.jitter_ratio)
        self._random = random.Random(seed)
        self._drawn: dict[tuple[int, int], Drawn] = {}
        self._energy = {gpu.uuid: 1e6 for gpu in scenario.server.gpus}

    @property
    def gpus(self) -> int:
        return len(self._scenario.server.gpus)

    def windows(self, days: float) -> Iterator[Window]:
        for start in range(START, START + round(days * DAY), STEP):
            if self._random.random() < 1 / 288:
                continue  # once a day the agent is away for five minutes
            yield from self._period(start)

    def _period(self, start: int) -> Iterator[Window]:
        present = self._timeline.at(start)
        key = (id(present.situation), self._random.randrange(3))
        drawn = self._drawn.get(key)
        if drawn is None:
            drawn = self._drawn[key] = self._draw(present.situation, start)
        for tier, offset, values in drawn:
            rows = {}
            for k, v in values.items():
                row = dict(v)
                if k[0] == "gpu":
                    self._jitter.window(row, start, k[1])
                    if tier == 10:
                        self._energy[k[1]] += row.get("power_watts", 0.0) * 10
                    row["energy_joules_total"] = self._energy[k[1]]
                rows[k] = Row(row, dict(present.texts.get(k, {})))
            yield Window("host", tier, start + offset, tier, rows)

    def _draw(self, situation: Situation, start: int) -> Drawn:
        aggregator = Aggregator("host", self._signals)
        every = range(self.gpus)
        made: list[Window] = []
        for second in range(start, start + STEP):
            rows = situation.rows(second, every)
            if self._random.random() < 0.002:
                continue  # a second that was missed
            made += aggregator.add(Sample(float(second), rows))
        made += aggregator.flush()
        return [
            (w.tier, w.start - start, {k: row.values for k, row in w.rows.items()}) for w in made
        ]


def false_alarms(gpu_days: float, seed: int) -> tuple[float, list[tuple[str, Told]]]:
    """GPU-days that were simulated, and the raised alerts, each with its scenario."""
    found: list[tuple[str, Told]] = []
    done = 0.0
    for number, name in enumerate(HEALTHY):
        scenario = load_scenario(name)
        fleet = Fleet(scenario, seed + number)
        days = gpu_days / len(HEALTHY) / fleet.gpus
        told = judged(fleet.windows(days), scenario.inventory())
        found += [(name, t) for t in told if t.raised]
        done += days * fleet.gpus
    return done, found


def summary(gpu_days: float, found: list[tuple[str, Told]]) -> str:
    """What was found, listed."""
    counts = Counter((name, t.rule, t.event.severity) for name, t in found)
    serious = sum(n for (_, _, severity), n in counts.items() if severity is not Severity.INFO)
    lines = [f"{gpu_days:.0f} GPU-days: {serious} alerts of severity warning or above"]
    lines += [
        f"{name}: {rule} ({severity.value}) {n}"
        for (name, rule, severity), n in sorted(counts.items())
    ]
    return "\n".join(lines)
