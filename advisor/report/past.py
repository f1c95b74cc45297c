"""What an earlier report said of a server, and what has become of it since."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from advisor.finding import Basis, Dimension, Finding, Verdict
from advisor.message import Amount, Message, Value
from telemetry.inventory import Inventory

QUIET = (Verdict.RIGHT, Verdict.ABSTAIN)
"""Verdicts whose findings ask for nothing."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommendation as it was given."""

    dimension: Dimension
    verdict: Verdict
    basis: Basis | None
    reason: Message
    recommendation: Message


@dataclass(frozen=True, slots=True)
class Past:
    """What an earlier report said of one server.

    `since` and `until` are the period that it told (Unix seconds); `worked` are GPU-hours that
    did work, of `total`; `lost` those lost to starvation.
    """

    since: int
    until: int
    verdict: Verdict
    inventory: Inventory
    worked: float
    total: float
    lost: float
    advice: tuple[Advice, ...]


class Outcome(StrEnum):
    """What has become of a recommendation, by what is seen now."""

    FOLLOWED = "followed"
    PARTLY = "partly"
    TOO_FAR = "too_far"
    CHANGED = "changed"
    """The hardware was changed as advised; whether it fits is not known yet."""
    GONE = "gone"
    """What it rested on is no longer seen, and the hardware is the same."""
    STANDS = "stands"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Followed:
    """One earlier recommendation; `then` and `now` are what it was about, where that is known."""

    advice: Advice
    outcome: Outcome
    then: Amount | str | None = None
    now: Amount | str | None = None


def followed(past: Past, inventory: Inventory, findings: tuple[Finding, ...]) -> list[Followed]:
    """The outcome of each earlier recommendation, judged by what is seen now and nothing else."""
    by_dimension = {finding.dimension: finding for finding in findings}
    found = []
    for advice in past.advice:
        size = _SIZES.get(advice.dimension)
        then, now = (None, None) if size is None else (size(past.inventory), size(inventory))
        outcome = _outcome(advice, by_dimension.get(advice.dimension), then, now)
        changed = then is not None and now is not None and then != now
        found.append(Followed(advice, outcome, then if changed else None, now if changed else None))
    return found


def _outcome(
    advice: Advice, now_found: Finding | None, then: Amount | str | None, now: Amount | str | None
) -> Outcome:
    judged = now_found is not None and now_found.verdict is not Verdict.ABSTAIN
    verdict = now_found.verdict if now_found is not None else Verdict.ABSTAIN
    if _as_advised(advice.verdict, then, now):
        if not judged:
            return Outcome.CHANGED
        if verdict is advice.verdict:
            return Outcome.PARTLY
        opposite = {Verdict.OVER: Verdict.UNDER, Verdict.UNDER: Verdict.OVER}
        return Outcome.TOO_FAR if verdict is opposite.get(advice.verdict) else Outcome.FOLLOWED
    if not judged:
        return Outcome.UNKNOWN
    return Outcome.STANDS if verdict is advice.verdict else Outcome.GONE


def _as_advised(verdict: Verdict, then: Amount | str | None, now: Amount | str | None) -> bool:
    if isinstance(then, Amount) and isinstance(now, Amount):
        if verdict is Verdict.OVER:
            return now.value < then.value
        if verdict is Verdict.UNDER:
            return now.value > then.value
    return then is not None and now is not None and then != now


def _summed(values: list[float | None], unit: str) -> Amount | None:
    known = [value for value in values if value is not None]
    return Amount(float(sum(known)), unit) if known and len(known) == len(values) else None


def _cards(inventory: Inventory) -> str | None:
    names = sorted({gpu.name for gpu in inventory.gpus if gpu.name})
    return ", ".join(names) or None


def _cores(inventory: Inventory) -> Amount | None:
    cpu = inventory.cpu
    known = cpu is not None and cpu.physical_cores is not None
    return Amount(float(cpu.physical_cores or 0), "cores") if known and cpu is not None else None


def _ram(inventory: Inventory) -> Amount | None:
    return None if inventory.memory_bytes is None else Amount(inventory.memory_bytes, "bytes")


def _links(inventory: Inventory) -> Amount | None:
    speeds = [n.speed_bits_per_second for n in inventory.nics if n.speed_bits_per_second]
    return Amount(float(max(speeds)), "bits/second") if speeds else None


def _feed(inventory: Inventory) -> Amount | None:
    watts = inventory.power_feed_watts
    return None if watts is None else Amount(float(watts), "watts")


_SIZES: Mapping[Dimension, Callable[[Inventory], Amount | str | None]] = {
    Dimension.GPU_COUNT: lambda i: Amount(float(len(i.gpus)), "GPUs"),
    Dimension.GPU_CLASS: _cards,
    Dimension.VRAM: lambda i: _summed([g.memory_bytes for g in i.gpus], "bytes"),
    Dimension.CPU: _cores,
    Dimension.RAM: _ram,
    Dimension.STORAGE: lambda i: _summed(
        [d.size_bytes for d in i.block_devices if d.kind == "nvme"], "bytes"
    ),
    Dimension.NETWORK: _links,
    Dimension.POWER: _feed,
}


# As JSON, for the database


def to_json(past: Past) -> dict[str, Any]:
    """The document that `from_json` reads."""
    return {
        "since": past.since,
        "until": past.until,
        "verdict": past.verdict.value,
        "inventory": past.inventory.to_json(),
        "worked": past.worked,
        "total": past.total,
        "lost": past.lost,
        "advice": [
            {
                "dimension": a.dimension.value,
                "verdict": a.verdict.value,
                "basis": None if a.basis is None else a.basis.value,
                "reason": _packed(a.reason),
                "recommendation": _packed(a.recommendation),
            }
            for a in past.advice
        ],
    }


def from_json(document: Mapping[str, Any]) -> Past:
    """What `to_json` wrote. Raises KeyError, TypeError or ValueError for anything else."""
    from advisor.inventories import from_store

    return Past(
        int(document["since"]),
        int(document["until"]),
        Verdict(document["verdict"]),
        from_store(document["inventory"], "advisor.db"),
        float(document["worked"]),
        float(document["total"]),
        float(document["lost"]),
        tuple(_advice(document["advice"])),
    )


def _advice(documents: list[Mapping[str, Any]]) -> Iterator[Advice]:
    for a in documents:
        yield Advice(
            Dimension(a["dimension"]),
            Verdict(a["verdict"]),
            None if a["basis"] is None else Basis(a["basis"]),
            _unpacked(a["reason"]),
            _unpacked(a["recommendation"]),
        )


def _packed(value: Message) -> dict[str, Any]:
    return {"says": value.template, "with": {n: _pack(v) for n, v in value.values.items()}}


def _pack(value: Value) -> Any:
    match value:
        case Message():
            return _packed(value)
        case Amount():
            return {"value": value.value, "unit": value.unit}
    return value


def _unpacked(document: Mapping[str, Any]) -> Message:
    return Message(document["says"], {n: _unpack(v) for n, v in document["with"].items()})


def _unpack(value: Any) -> Value:
    if isinstance(value, dict):
        if "says" in value:
            return _unpacked(value)
        return Amount(value["value"], value["unit"])
    if not isinstance(value, str | int | float):
        raise ValueError("expected a text or a number")
    return value
