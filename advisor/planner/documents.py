"""What the guides say about the question, beside what the arithmetic gives.

The guides' own words are in documents.toml. Where a guide's sum fails it is shown, never used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from advisor.catalogue import Gpu, find_gpu
from advisor.planner.data import PlanError, quant, read
from advisor.planner.need import Need, need
from advisor.planner.request import Question
from advisor.planner.weights import weights_bytes

GIB, GB = 1 << 30, 1_000_000_000
WEIGHTS_TOLERANCE = 0.1
Verdict = Literal["holds", "fails"]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a guide says, what we compute, and whether the guide's arithmetic holds here."""

    id: str
    rule: str
    guide: str
    says: str
    computed: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Profile:
    """Whether a choice of cards is the documented one, with the rules that say so."""

    meets: bool
    notes: tuple[str, ...]


def claims(question: Question, wanted: Need) -> tuple[Claim, ...]:
    """The guides' statements that bear on this question, each tested."""
    found = []
    for entry in _entries("claim", question):
        tested = _test(question, wanted, entry)
        if tested is not None:
            computed, holds = tested
            found.append(
                Claim(
                    id=str(entry["id"]),
                    rule=str(entry["rule"]),
                    guide=str(entry["guide"]),
                    says=str(entry["quote"]),
                    computed=computed,
                    verdict="holds" if holds else "fails",
                )
            )
    return tuple(found)


def profile_of(question: Question, gpu: Gpu, count: int) -> Profile | None:
    """The documented profiles of the task, held against `count` of `gpu`; None if there is none."""
    applying = list(_entries("profile", question))
    notes, meets = [], True
    if question.training and not gpu.bf16:
        meets = False
        notes.append("below the documented profile: BF16 needs Ampere or later (R51)")
    for entry in applying:
        misses = list(_misses(entry, gpu, count))
        if misses:
            meets = False
            notes.append(f"not the documented profile ({entry['rule']}): {', '.join(misses)}")
    return Profile(meets, tuple(notes)) if applying or notes else None


def _misses(entry: Mapping[str, object], gpu: Gpu, count: int) -> Iterator[str]:
    counts, sizes = _pair(entry, "count"), _pair(entry, "gigabytes")
    if counts is not None and not counts[0] <= count <= counts[1]:
        yield f"{_span(counts)} GPUs"
    cards = _words(entry, "cards")
    if cards and not any(_is_card(gpu, card) for card in cards):
        yield "/".join(cards)
    if any(_is_card(gpu, card) for card in _words(entry, "not_cards")):
        yield f"another class than {gpu.name}"
    nominal = gpu.nominal_memory_bytes / GB
    if sizes is not None and not sizes[0] <= nominal <= sizes[1]:
        yield f"{_span(sizes)} GB"
    if entry.get("nvlink") and count > 1 and not gpu.has_nvlink:
        yield "NVLink, which this card cannot have"


def _is_card(gpu: Gpu, card: str) -> bool:
    return gpu.name == card or gpu.name.startswith(f"{card} ")


def _test(question: Question, wanted: Need, entry: Mapping[str, object]) -> tuple[str, bool] | None:
    kind = entry["kind"]
    if kind == "memory_enough":
        return _memory_enough(question, _number(entry, "gigabytes"))
    if kind == "weights":
        said = _number(entry, "gigabytes")
        real = weights_bytes(question.model, question.quant) / GB
        computed = f"the weights take {real:.1f} GB as {question.quant.name}, before any cache"
        return computed, abs(real - said) <= WEIGHTS_TOLERANCE * said
    if kind == "weights_factor":
        whole = weights_bytes(question.model, quant("bf16"))
        factor = whole / weights_bytes(question.model, question.quant)
        return (
            f"{factor:.1f} times less: scales and 16-bit embeddings are left",
            factor >= _number(entry, "factor") * (1 - WEIGHTS_TOLERANCE),
        )
    if kind == "training_factor":
        return _training_factor(question, _number(entry, "low"), _number(entry, "high"))
    if kind == "cards":
        return _cards(question, entry)
    return _small_cache(wanted, _number(entry, "share"))


def _memory_enough(question: Question, gigabytes: float) -> tuple[str, bool]:
    one = need(question, 1, round(gigabytes * GIB))
    taken = one.per_gpu_bytes + one.transient_bytes
    fits = taken <= gigabytes * GIB
    weights = one.part("weights_bytes")
    held = weights.bytes if weights is not None else 0
    return (
        f"weights {held / GIB:.1f} GiB, all {taken / GIB:.1f} GiB of {gigabytes:g} GiB",
        fits,
    )


def _training_factor(question: Question, low: float, high: float) -> tuple[str, bool]:
    alone = question.recipe
    each = alone.weights + (alone.accumulated or alone.gradients) + alone.optimizer
    factor = each / 2.0
    computed = (
        f"{alone.name}: {each:g} B for each parameter, {factor:.1f} times the 16-bit weights, "
        "before activations"
    )
    return computed, low <= factor <= high


def _cards(question: Question, entry: Mapping[str, object]) -> tuple[str, bool] | None:
    choices = entry.get("choices")
    told, holds = [], True
    for choice in choices if isinstance(choices, list) else []:
        gpu, count = find_gpu(str(choice["card"])), int(choice["count"])
        if gpu is None:
            continue
        try:
            wanted = need(question, count, gpu.memory_bytes)
        except PlanError:
            continue
        taken, total = wanted.per_gpu_bytes * count, gpu.memory_bytes * count
        fits = wanted.per_gpu_bytes <= gpu.memory_bytes
        holds = holds and fits
        told.append(
            f"{count} x {gpu.name}: {taken / GB:,.0f} of {total / GB:,.0f} GB"
            + ("" if fits else ", does not fit")
        )
    return ("; ".join(told), holds) if told else None


def _small_cache(wanted: Need, share: float) -> tuple[str, bool] | None:
    cache, weights = wanted.part("kv_cache_bytes"), wanted.part("weights_bytes")
    if cache is None or weights is None:
        return None
    ratio = cache.bytes / weights.bytes
    return (
        f"the cache of these sequences is {cache.bytes / GIB:.2f} GiB, {ratio:.0%} of the weights",
        ratio <= share,
    )


def _entries(kind: str, question: Question) -> Iterator[Mapping[str, object]]:
    billions = question.model.parameters / GB
    for entry in _list(kind):
        tasks, size, bits = entry.get("tasks"), _pair(entry, "parameters"), _pair(entry, "bits")
        if isinstance(tasks, list) and question.task not in tasks:
            continue
        if size is not None and not size[0] <= billions <= size[1]:
            continue
        if bits is not None and not bits[0] <= question.quant.linear <= bits[1]:
            continue
        yield entry


@cache
def _list(kind: str) -> tuple[Mapping[str, object], ...]:
    found: object = read("documents.toml").get(kind, [])
    return tuple(found) if isinstance(found, list) else ()


def _pair(entry: Mapping[str, object], key: str) -> tuple[float, float] | None:
    value = entry.get(key)
    if not isinstance(value, list) or len(value) != 2:
        return None
    return float(value[0]), float(value[1])


def _words(entry: Mapping[str, object], key: str) -> list[str]:
    value = entry.get(key)
    return [str(item) for item in value] if isinstance(value, list) else []


def _number(entry: Mapping[str, object], key: str) -> float:
    value = entry.get(key)
    if not isinstance(value, int | float):
        raise ValueError(f"documents.toml: {key} is no number in {dict(entry)}")
    return float(value)


def _span(pair: tuple[float, float]) -> str:
    return f"{pair[0]:g}" if pair[0] == pair[1] else f"{pair[0]:g} to {pair[1]:g}"
