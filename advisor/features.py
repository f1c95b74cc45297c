"""Windows of one GPU become features of a stretch of work; what was not read is absent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median_low, pstdev

from telemetry.window import Frame

_FEWEST_TO_DEVIATE = 4
"""Windows of which a deviation says something."""


@dataclass(frozen=True, slots=True)
class Features:
    """A stretch of work on one GPU. Levels are medians over its active windows, by seconds.

    The first and the last active window, which work may have entered late or left early, count
    only where there are no others. `duty_ratio` is the share of seconds with a kernel;
    utilisation and power are those of such seconds. `quiet_share` is the share of time in which
    nothing ran, `alternations` how often it went from work to waiting or back,
    `memory_spread_ratio` the range of memory held over the card's. `power_peak_ratio` and
    `power_trough_ratio` are the highest and the lowest second of a window over its mean, so that
    they need no limit; `power_deviation_ratio` is the deviation of the windows' means over theirs.
    Rates over PCIe and NVLink are both directions together. `alike_gpus` counts the GPUs (this one
    included) that did the same at the same time.
    """

    start: int
    end: int
    seconds: int
    coverage_ratio: float
    duty_ratio: float | None = None
    utilization_ratio: float | None = None
    power_ratio: float | None = None
    sm_active_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None
    power_peak_ratio: float | None = None
    power_trough_ratio: float | None = None
    power_deviation_ratio: float | None = None
    pcie_bytes_per_second: float | None = None
    nvlink_bytes_per_second: float | None = None
    decoder_ratio: float | None = None
    encoder_ratio: float | None = None
    memory_ratio: float | None = None
    memory_spread_ratio: float | None = None
    quiet_share: float = 0.0
    alternations: int = 0
    alike_gpus: int = 1


def features_of(
    frame: Frame, windows: Sequence[int], active: Sequence[int], power_limit_watts: float | None
) -> Features:
    """Features of the stretch `windows` (in order, not empty), active in `active` of them."""
    seconds = sum(frame.seconds[i] for i in windows)
    covered = frame.columns.get("covered_seconds")
    working = set(active)
    turns = [i in working for i in windows]
    low = _column(frame, ("memory_used_bytes_min", "memory_used_bytes"), windows)
    high = _column(frame, ("memory_used_bytes_max", "memory_used_bytes"), windows)
    total = max(_column(frame, ("memory_total_bytes",), windows), default=None)
    inner = active[1:-1] if len(active) > 2 else active
    utilization, power = _while_working(frame, inner)
    watts = _median(frame, inner, power)
    memory = _median(frame, inner, frame.columns.get("memory_used_bytes"))
    return Features(
        start=frame.start[windows[0]],
        end=frame.start[windows[-1]] + frame.seconds[windows[-1]],
        seconds=seconds,
        coverage_ratio=(
            1.0
            if covered is None
            else min(1.0, sum(covered[i] or 0.0 for i in windows) / max(1, seconds))
        ),
        duty_ratio=_duty(frame, inner),
        utilization_ratio=_median(frame, inner, utilization),
        power_ratio=watts / power_limit_watts if watts and power_limit_watts else None,
        sm_active_ratio=_median(frame, inner, frame.columns.get("sm_active_ratio")),
        tensor_active_ratio=_median(frame, inner, frame.columns.get("tensor_active_ratio")),
        dram_active_ratio=_median(frame, inner, frame.columns.get("dram_active_ratio")),
        power_peak_ratio=_median_quotient(frame, inner, "power_watts_max", "power_watts"),
        power_trough_ratio=_median_quotient(frame, inner, "power_watts_min", "power_watts"),
        power_deviation_ratio=_deviation(_column(frame, ("power_watts",), inner)),
        pcie_bytes_per_second=_both_ways(frame, inner, "pcie"),
        nvlink_bytes_per_second=_both_ways(frame, inner, "nvlink"),
        decoder_ratio=_median(frame, inner, frame.columns.get("decoder_ratio")),
        encoder_ratio=_median(frame, inner, frame.columns.get("encoder_ratio")),
        memory_ratio=memory / total if memory is not None and total else None,
        memory_spread_ratio=(max(high) - min(low)) / total if low and high and total else None,
        quiet_share=1.0 - sum(frame.seconds[i] for i in active) / max(1, seconds),
        alternations=sum(a != b for a, b in pairwise(turns)),
    )


def _column(frame: Frame, names: Sequence[str], windows: Sequence[int]) -> list[float]:
    for name in names:
        column = frame.columns.get(name)
        if column is not None:
            values = [value for i in windows if (value := column[i]) is not None]
            if values:
                return values
    return []


def _median_quotient(frame: Frame, windows: Sequence[int], above: str, below: str) -> float | None:
    over, under = frame.columns.get(above), frame.columns.get(below)
    if over is None or under is None:
        return None
    cells: list[float | None] = [None] * len(frame)
    for i in windows:
        a, b = over[i], under[i]
        cells[i] = a / b if a is not None and b else None
    return _median(frame, windows, cells)


def _deviation(means: Sequence[float]) -> float | None:
    """Standard deviation over the mean; None where there are too few windows to tell."""
    if len(means) < _FEWEST_TO_DEVIATE:
        return None
    middle = fmean(means)
    return pstdev(means, middle) / middle if middle else None


def _both_ways(frame: Frame, windows: Sequence[int], link: str) -> float | None:
    ways = [
        rate
        for way in ("rx", "tx")
        if (rate := _median(frame, windows, frame.columns.get(f"{link}_{way}_bytes_per_second")))
        is not None
    ]
    return sum(ways) if ways else None


def _duty(frame: Frame, windows: Sequence[int]) -> float | None:
    zeros = frame.columns.get("utilization_ratio_zero_ratio")
    if zeros is None:
        return None
    return _median(frame, windows, [None if z is None else 1.0 - z for z in zeros])


def _while_working(
    frame: Frame, windows: Sequence[int]
) -> tuple[Sequence[float | None] | None, Sequence[float | None] | None]:
    """Utilisation and power of the seconds with a kernel, from means and the share of zeros.

    A second without a kernel is taken to draw the least power that the window saw; none draws more
    than the most.
    """
    utilization = frame.columns.get("utilization_ratio")
    power = frame.columns.get("power_watts")
    zeros = frame.columns.get("utilization_ratio_zero_ratio")
    least, most = frame.columns.get("power_watts_min"), frame.columns.get("power_watts_max")
    if zeros is None:
        return utilization, power
    working_utilization = None if utilization is None else list(utilization)
    working_power = None if power is None else list(power)
    for i in windows:
        zero = zeros[i]
        if zero is None or not 0.0 < zero < 1.0:
            continue
        if working_utilization is not None and (mean := working_utilization[i]) is not None:
            working_utilization[i] = mean / (1.0 - zero)
        low = None if least is None else least[i]
        if low is not None and working_power is not None and (mean := working_power[i]) is not None:
            drawn = (mean - zero * low) / (1.0 - zero)
            top = None if most is None else most[i]
            working_power[i] = drawn if top is None else min(drawn, top)
    return working_utilization, working_power


def _median(
    frame: Frame, windows: Sequence[int], column: Sequence[float | None] | None
) -> float | None:
    """The median of a column over windows, each counting by its seconds."""
    if column is None:
        return None
    pairs = sorted((value, frame.seconds[i]) for i in windows if (value := column[i]) is not None)
    half = sum(seconds for _, seconds in pairs) / 2
    for value, seconds in pairs:
        half -= seconds
        if half <= 0:
            return value
    return None


def together(features: Sequence[Features]) -> Features:
    """One job's features over its GPUs: the first's, with the median level of all."""
    return replace(
        features[0],
        alike_gpus=len(features),
        duty_ratio=_middle(f.duty_ratio for f in features),
        utilization_ratio=_middle(f.utilization_ratio for f in features),
        power_ratio=_middle(f.power_ratio for f in features),
        sm_active_ratio=_middle(f.sm_active_ratio for f in features),
        tensor_active_ratio=_middle(f.tensor_active_ratio for f in features),
        dram_active_ratio=_middle(f.dram_active_ratio for f in features),
    )


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median_low(known) if known else None
