"""A scenario as samples of one second, and as windows drawn straight from its signals.

Both give the same windows: a window's row depends only on the jobs that are there and on where
in its period the window begins, so 300 seconds are drawn once, put through the very aggregator
and kept; a window of the history is such a draw with its jitter, its energy and its texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from telemetry.aggregate import Aggregator
from telemetry.signals import Signals
from telemetry.simulation.jitter import Jitter
from telemetry.simulation.moment import Situation
from telemetry.simulation.scenario import Scenario
from telemetry.simulation.schedule import DAY, STEP
from telemetry.simulation.timeline import Timeline
from telemetry.window import Key, Row, Sample, Window

SAMPLED_SECONDS = 600
"""The end of a history that goes through samples, so that it has windows of both tiers."""

ENERGY_AT_START_JOULES = 1e6
"""What a card's energy counter shows at the beginning: the driver was loaded before."""

Values = dict[str, float]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The rows of a window: those of the GPUs that stand for their twins, and all others."""

    host: dict[Key, Values]
    gpus: dict[int, Values]
    processes: dict[tuple[int, int], Values]


class Simulation:
    """A scenario that runs from `origin` (Unix time) on. `signals` mark gaps, by default Talla's.

    Energy is counted from one call to the next; times must therefore not go back.
    """

    def __init__(self, scenario: Scenario, origin: int, signals: Signals | None = None) -> None:
        self._scenario = scenario
        self._signals = signals if signals is not None else Signals.load()
        self._timeline = Timeline(scenario, origin)
        self._jitter = Jitter(scenario.seed, scenario.jitter_ratio)
        self._energy = {gpu.uuid: ENERGY_AT_START_JOULES for gpu in scenario.server.gpus}
        self._drawn: dict[tuple[int, int], _Drawn] = {}

    def sample(self, time: int) -> Sample:
        """What an agent would have read over the second that begins at `time`."""
        gpus = self._scenario.server.gpus
        present = self._timeline.at(time)
        rows = present.situation.rows(time, range(len(gpus)))
        for gpu in gpus:
            row = rows["gpu", gpu.uuid]
            self._jitter.sample(row, time, gpu.uuid)
            self._energy[gpu.uuid] += row["power_watts"]
            row["energy_joules_total"] = self._energy[gpu.uuid]
        texts = {key: dict(present.texts[key]) for key in rows if key in present.texts}
        return Sample(float(time), rows, texts)

    def window(self, start: int) -> Window:
        """The five-minute window that begins at `start`, a multiple of 300."""
        present = self._timeline.at(start)
        situation = present.situation
        key = (id(situation), start % situation.period)
        drawn = self._drawn.get(key)
        if drawn is None:
            drawn = self._drawn[key] = self._draw(situation, start)
        rows = {k: Row(dict(v), dict(present.texts.get(k, {}))) for k, v in drawn.host.items()}
        twins = situation.twins()
        for gpu in self._scenario.server.gpus:
            twin = twins[gpu.index]
            values = dict(drawn.gpus[twin])
            self._jitter.window(values, start, gpu.uuid)
            self._energy[gpu.uuid] += values["power_watts"] * STEP
            values["energy_joules_total"] = self._energy[gpu.uuid]
            k: Key = ("gpu", gpu.uuid)
            rows[k] = Row(values, dict(present.texts[k]))
            for slot, _ in situation.slots(gpu.index):
                k = ("gpu_process", gpu.uuid, str(slot))
                rows[k] = Row(dict(drawn.processes[twin, slot]), dict(present.texts[k]))
        return Window(self._scenario.server.host, STEP, start, STEP, rows)

    def _draw(self, situation: Situation, start: int) -> _Drawn:
        gpus = self._scenario.server.gpus
        shown = sorted(set(situation.twins().values()))
        aggregator = Aggregator("", self._signals, tiers=(STEP,))
        for second in range(start, start + STEP):
            aggregator.add(Sample(float(second), situation.rows(second, shown)))
        rows = aggregator.flush()[-1].rows
        return _Drawn(
            {k: row.values for k, row in rows.items() if k[0] not in ("gpu", "gpu_process")},
            {i: rows["gpu", gpus[i].uuid].values for i in shown},
            {
                (i, slot): rows["gpu_process", gpus[i].uuid, str(slot)].values
                for i in shown
                for slot, _ in situation.slots(i)
            },
        )


def samples(
    scenario: Scenario, start: int, seconds: int, *, origin: int | None = None
) -> Iterator[Sample]:
    """One sample a second from `start` (Unix time). `origin`, by default `start`, is day 0."""
    simulation = Simulation(scenario, start if origin is None else origin)
    for time in range(start, start + seconds):
        yield simulation.sample(time)


def history(scenario: Scenario, start: int, days: float) -> Iterator[Window]:
    """The windows of `days` days from `start` (Unix time, taken back to a multiple of 300).

    Five-minute windows, straight from the signals; the last ten minutes go through one-second
    samples and give windows of both tiers.
    """
    start -= start % STEP
    end = start + max(SAMPLED_SECONDS, round(days * DAY / STEP) * STEP)
    signals = Signals.load()
    simulation = Simulation(scenario, start, signals)
    for begin in range(start, end - SAMPLED_SECONDS, STEP):
        yield simulation.window(begin)
    aggregator = Aggregator(scenario.server.host, signals)
    for second in range(end - SAMPLED_SECONDS, end):
        yield from aggregator.add(simulation.sample(second))
    yield from aggregator.flush()
