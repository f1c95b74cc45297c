"""Stages a GPU second by second, and lets the real aggregator make its windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from telemetry.aggregate import Aggregator
from telemetry.signals import Signals
from telemetry.states import Classifier, Jobs, Surroundings, WindowState
from telemetry.window import Frame, Key, Sample, Window
from telemetry.workload import Kind

GPU: Key = ("gpu", "GPU-1")
START = 1_772_323_200  # a multiple of 300
GIB = 2.0**30
H100 = {"power_limit_watts": 700.0, "memory_total_bytes": 80 * GIB}

Second = dict[str, float]


def idle(**more: float) -> Second:
    """A second of an H100 with nothing on it."""
    return {
        "utilization_ratio": 0.0,
        "power_watts": 70.0,
        "memory_used_bytes": 0.0,
        "process_count": 0.0,
        "pcie_rx_bytes_per_second": 3e5,
        "pcie_tx_bytes_per_second": 3e5,
        **H100,
        **more,
    }


def held(gib: float = 40.0, **more: float) -> Second:
    """A second of an H100 whose process does nothing."""
    memory = {"memory_used_bytes": gib * GIB, "process_memory_bytes": gib * GIB}
    return idle(**{**memory, "process_count": 1.0, "power_watts": 120.0, **more})


def step(
    utilization: float = 0.98, watts: float = 600.0, gib: float = 40.0, **more: float
) -> Second:
    """A second of work."""
    return {
        **held(gib),
        "utilization_ratio": utilization,
        "power_watts": watts,
        "pcie_rx_bytes_per_second": 2e7,
        "pcie_tx_bytes_per_second": 1e7,
        **more,
    }


HEALTHY_HOST: Second = {
    "pressure_io_some_ratio": 0.0,
    "cpu_iowait_ratio": 0.0,
    "pressure_cpu_some_ratio": 0.01,
    "cpu_busy_ratio": 0.2,
    "pressure_memory_some_ratio": 0.0,
}


@dataclass
class Stage:
    """Seconds of a GPU and of its host, in order; None is a second that was not sampled."""

    gpu: list[Second | None] = field(default_factory=list)
    rows: list[dict[Key, Second]] = field(default_factory=list)
    texts: dict[Key, dict[str, str]] = field(default_factory=dict)
    _made: dict[int, list[Window]] = field(default_factory=dict)

    def add(self, seconds: int, gpu: Second | None, rows: dict[Key, Second] | None = None) -> Stage:
        """The same for some seconds. `rows` are those beside the GPU's; a healthy host if None."""
        self.gpu += [gpu] * seconds
        self.rows += [rows if rows is not None else {("host",): HEALTHY_HOST}] * seconds
        return self

    def cycle(
        self,
        seconds: int,
        length: int,
        gpu: Callable[[int], Second],
        rows: Callable[[int], dict[Key, Second]] | None = None,
    ) -> Stage:
        """A pattern that repeats every `length` seconds."""
        for i in range(seconds):
            self.add(1, gpu(i % length), rows(i % length) if rows else None)
        return self

    def windows(self, tier: int = 300) -> list[Window]:
        """The windows of a tier, made once: nothing is added afterwards."""
        if tier in self._made:
            return self._made[tier]
        aggregator = Aggregator("host", Signals.load())
        windows: list[Window] = []
        for second, (gpu, rows) in enumerate(zip(self.gpu, self.rows, strict=True)):
            if gpu is None:
                continue
            sample = Sample(START + second, {k: dict(v) for k, v in rows.items()}, {})
            sample.rows[GPU] = dict(gpu)
            sample.texts.update({k: dict(v) for k, v in self.texts.items() if k in sample.rows})
            windows += aggregator.add(sample)
        self._made[tier] = [w for w in (*windows, *aggregator.flush()) if w.tier == tier]
        return self._made[tier]

    def states(
        self,
        kind: Kind | None = None,
        *,
        tier: int = 300,
        without: Sequence[str] = (),
        processor_share: float | None = None,
    ) -> list[WindowState]:
        """The states of the GPU's windows; `without` are columns that are not there."""
        frames = frames_of(self.windows(tier))
        gpu = frames[GPU]
        for name in without:
            for column in [c for c in gpu.columns if c.startswith(name)]:
                del gpu.columns[column]
        around = Surroundings(
            frames.get(("host",)),
            tuple(f for k, f in frames.items() if k[0] == "disk"),
            tuple(f for k, f in frames.items() if k[0] == "mount"),
            tuple(f for k, f in frames.items() if k[0] == "nic"),
        )
        share = None if processor_share is None else [processor_share] * len(gpu)
        return Classifier().classify(gpu, around, Jobs([kind] * len(gpu), share))


def frames_of(windows: Iterable[Window]) -> dict[Key, Frame]:
    """The columns of each subject."""
    frames: dict[Key, Frame] = {}
    for window in windows:
        for key, row in window.rows.items():
            frame = frames.setdefault(key, Frame(key))
            for name in row.values.keys() - frame.columns.keys():
                frame.columns[name] = [None] * len(frame)
            frame.start.append(window.start)
            frame.seconds.append(window.seconds)
            frame.texts.append(row.texts)
            for name, column in frame.columns.items():
                column.append(row.values.get(name))
    return frames
