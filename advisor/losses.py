"""What held a GPU back over a period: by cause and place, with rate, ceiling and evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from advisor.assessment import Loss
from telemetry.inventory import Inventory
from telemetry.state import Place, State, WindowState

_Key = tuple[State, str, str | None, str | None]


@dataclass(slots=True)
class _Sum:
    hours: float = 0.0
    lost_hours: float | None = None
    rate: float | None = None
    place: Place | None = None
    told: WindowState | None = None
    """The most certain window, whose evidence is shown."""
    weights: list[tuple[float, float]] = field(default_factory=list)


def losses(parts: Iterable[tuple[WindowState, float]], inventory: Inventory) -> tuple[Loss, ...]:
    """Losses of one GPU, the largest first, from its windows' states and their seconds.

    A disk's ceiling is the user's benchmark or its link's rate in the inventory, a mount's the
    link of the port that its data come through; without one the speed is not judged.
    """
    sums: dict[_Key, _Sum] = {}
    for state, seconds in parts:
        if state.cause is None:
            continue
        place = state.place
        key = (
            state.state,
            state.cause.value,
            None if place is None else place.measurement,
            None if place is None else place.name,
        )
        one = sums.setdefault(key, _Sum())
        one.hours += seconds / 3600
        if state.lost_ratio is not None:
            one.lost_hours = (one.lost_hours or 0.0) + seconds * state.lost_ratio / 3600
        if place is not None:
            one.place = place
            if place.bytes_per_second is not None:
                one.rate = max(one.rate or 0.0, place.bytes_per_second)
        one.weights.append((seconds, state.confidence))
        if one.told is None or state.confidence > one.told.confidence:
            one.told = state
    found = [_loss(one, inventory) for one in sums.values()]
    return tuple(sorted(found, key=lambda loss: (-(loss.lost_hours or 0.0), -loss.hours)))


def _loss(one: _Sum, inventory: Inventory) -> Loss:
    assert one.told is not None
    assert one.told.cause is not None
    ceiling, source = _ceiling(one.place, inventory)
    weight = sum(seconds for seconds, _ in one.weights)
    return Loss(
        state=one.told.state,
        cause=one.told.cause,
        hours=one.hours,
        lost_hours=one.lost_hours,
        confidence=sum(s * c for s, c in one.weights) / weight if weight else 0.0,
        place=None if one.place is None else f"{one.place.measurement} {one.place.name}",
        bytes_per_second=one.rate,
        ceiling_bytes_per_second=ceiling,
        ceiling_source=source,
        evidence=one.told.evidence,
    )


def _ceiling(place: Place | None, inventory: Inventory) -> tuple[float | None, str | None]:
    if place is None:
        return None, None
    if place.ceiling_bytes_per_second is not None:
        return place.ceiling_bytes_per_second, "link"
    if place.measurement == "disk":
        for device in inventory.block_devices:
            if device.name == place.name:
                return device.ceiling() or (None, None)
    return None, None


def loss_json(loss: Loss) -> dict[str, Any]:
    """The JSON object within `talla-advisor hours`; what is not known is not there."""
    told: dict[str, Any] = {
        "state": loss.state.value,
        "cause": loss.cause.value,
        "hours": round(loss.hours, 4),
        "lost_hours": None if loss.lost_hours is None else round(loss.lost_hours, 4),
        "confidence": round(loss.confidence, 3),
        "place": loss.place,
        "bytes_per_second": loss.bytes_per_second,
        "ceiling_bytes_per_second": loss.ceiling_bytes_per_second,
        "ceiling_source": loss.ceiling_source,
        "evidence": list(loss.evidence),
    }
    return {name: value for name, value in told.items() if value is not None}
