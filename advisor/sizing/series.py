"""Statistics over the windows of a frame; None wherever no window has the field."""

from __future__ import annotations

from collections.abc import Sequence

from telemetry.window import Frame


def only(frames: Sequence[Frame]) -> Frame | None:
    """The frame of a subject that there is one of, such as the host."""
    return frames[0] if frames else None


def known(frame: Frame, *fields: str) -> list[float]:
    """The values that windows have of the first field, else of the next."""
    for field in fields:
        values = [v for v in frame.columns.get(field, ()) if v is not None]
        if values:
            return values
    return []


def maximum(frame: Frame, *fields: str) -> float | None:
    """The greatest value of the first field that any window has."""
    values = known(frame, *fields)
    return max(values) if values else None


def share_at_least(frame: Frame, field: str, level: float) -> float | None:
    """Share of the windows having the field in which it is at least `level`."""
    values = known(frame, field)
    return sum(v >= level for v in values) / len(values) if values else None


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile of at least one value (share 0..1)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
