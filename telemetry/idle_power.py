"""What a GPU draws when nothing runs on it, learned for each GPU."""

from __future__ import annotations

from telemetry.thresholds import Thresholds
from telemetry.window import Frame


def learn_idle_power(frame: Frame, thresholds: Thresholds) -> float | None:
    """Watts at the low end of the windows in which no kernel ran; None where there was none.

    What is above half of the power limit is not believed to be idle.
    """
    power = frame.columns.get("power_watts")
    if power is None:
        return None
    nothing: list[float | None] = [None] * len(frame)
    means = frame.columns.get("utilization_ratio", nothing)
    maxima = frame.columns.get("utilization_ratio_max", nothing)
    activity = [mean if top is None else top for mean, top in zip(means, maxima, strict=True)]
    idle = sorted(
        watts
        for watts, top in zip(power, activity, strict=True)
        if watts is not None
        and watts > 0.0
        and top is not None
        and top <= thresholds.idle_utilization_ratio
    )
    if not idle:
        return None
    low = idle[int(thresholds.idle_power_percentile * (len(idle) - 1))]
    limits = [v for v in frame.columns.get("power_limit_watts", ()) if v is not None]
    if limits and low > thresholds.idle_power_limit_ratio * max(limits):
        return None
    return low
