"""Which cards hold it: for each card of the catalogue the smallest number that does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor.catalogue import Gpu, gpus
from advisor.planner.data import PlanError, constant
from advisor.planner.documents import profile_of
from advisor.planner.kv_cache import kv_pieces, sequence_bytes, tokens_in
from advisor.planner.need import Need, need
from advisor.planner.request import Question
from advisor.planner.speed import decode_ceiling
from advisor.planner.weights import tensor_parallel_counts

MOST_GPUS = 8  # of one server
DATA_PARALLEL_COUNTS = (1, 2, 4, 8)
GIVEN_CARD = "given memory"


@dataclass(frozen=True, slots=True)
class Fit:
    """A number of cards and what is left on them.

    `headroom_ratio` is the free share of what a GPU's processes may use; below zero it does not
    fit. `kv_cache_available_bytes` is what is left for the cache over all cards after weights,
    activations and overhead, and `kv_cache_tokens` the tokens that it holds. The speed is a
    ceiling, of one sequence.
    """

    gpu: str
    count: int
    total_memory_bytes: int
    need_per_gpu_bytes: int
    usable_per_gpu_bytes: int
    headroom_ratio: float
    kv_cache_available_bytes: int | None
    kv_cache_tokens: int | None
    decode_tokens_per_second_ceiling: float | None
    meets_documented_profile: bool | None
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        return self.headroom_ratio >= 0


def fits(question: Question) -> tuple[tuple[Fit, ...], tuple[Fit, ...]]:
    """The choices that fit, smallest first, and the counts of a card asked for that do not.

    Raises PlanError where the number of GPUs asked for cannot hold the model at all.
    """
    request = question.request
    if request.gpu_memory_bytes is not None:
        tried = list(_tried(question, None, request.gpu_memory_bytes))
    elif request.gpu is not None:
        tried = list(_tried(question, request.gpu, _visible(request.gpu)))
    else:
        tried = []
        for gpu in gpus():
            if gpu.unified_memory or (question.training and not gpu.bf16):
                continue
            first = next((f for f in _tried(question, gpu, _visible(gpu)) if f.fits), None)
            tried += [first] if first is not None else []
    holding = [fit for fit in tried if fit.fits]
    if request.gpus is None:
        holding = _smallest_of_each(holding)
    named = request.gpu is not None or request.gpu_memory_bytes is not None
    failing = [fit for fit in tried if not fit.fits] if named else []
    holding.sort(key=lambda fit: (fit.total_memory_bytes, fit.count, fit.gpu))
    return tuple(holding), tuple(failing)


def _smallest_of_each(found: list[Fit]) -> list[Fit]:
    first: dict[str, Fit] = {}
    for fit in found:
        first.setdefault(fit.gpu, fit)
    return list(first.values())


def _visible(gpu: Gpu) -> int:
    """Bytes that processes can allocate: NVML's total less what the driver keeps."""
    return gpu.memory_bytes - round(constant("driver_reserved_bytes"))


def _tried(question: Question, gpu: Gpu | None, card_bytes: int) -> Iterator[Fit]:
    for count in _counts(question):
        yield _fit(question, gpu, card_bytes, count)


def _counts(question: Question) -> list[int]:
    asked = question.request.gpus
    if asked is not None:
        return [asked]
    if question.training:
        return list(DATA_PARALLEL_COUNTS)
    if question.engine.parallel == "tensor":
        return tensor_parallel_counts(question.model, MOST_GPUS)
    return list(range(1, MOST_GPUS + 1))


def _fit(question: Question, gpu: Gpu | None, card_bytes: int, count: int) -> Fit:
    wanted = need(question, count, card_bytes)
    usable, taken, headroom = _room(question, wanted, card_bytes)
    available, tokens = _cache_room(question, wanted, usable, taken)
    total = (gpu.memory_bytes if gpu is not None else card_bytes) * count
    profile = profile_of(question, gpu, count) if gpu is not None else None
    ceiling = None
    if gpu is not None and not question.training:
        ceiling = decode_ceiling(question, count, gpu.bandwidth_bytes_per_second)
    notes = [*_notes(question, gpu, count, wanted, headroom)]
    if profile is not None:
        notes += profile.notes
    return Fit(
        gpu=gpu.name if gpu is not None else GIVEN_CARD,
        count=count,
        total_memory_bytes=total,
        need_per_gpu_bytes=taken,
        usable_per_gpu_bytes=usable,
        headroom_ratio=headroom,
        kv_cache_available_bytes=available,
        kv_cache_tokens=tokens,
        decode_tokens_per_second_ceiling=ceiling,
        meets_documented_profile=profile.meets if profile is not None else None,
        notes=tuple(notes),
    )


def _room(question: Question, wanted: Need, card_bytes: int) -> tuple[int, int, float]:
    """What an engine may use of a card, what it takes of that, and the share that is left.

    An engine that fills a share of the card keeps the context outside it, and some keep the
    activations outside too; all together must still be within the card.
    """
    whole = wanted.per_gpu_bytes + wanted.transient_bytes
    if question.training and not wanted.complete:
        whole += wanted.context_bytes
    if question.training or question.utilization is None:
        return card_bytes, whole, (card_bytes - whole) / card_bytes
    usable, taken = round(card_bytes * question.utilization), whole - wanted.context_bytes
    if question.engine.utilization is not None and not question.engine.share_holds_activations:
        kept = (wanted.part("weights_bytes"), wanted.part("kv_cache_bytes"))
        taken = sum(part.per_gpu_bytes for part in kept if part is not None)
    left = min((usable - taken) / usable, (card_bytes - whole) / card_bytes)
    return usable, taken, left


def _cache_room(
    question: Question, wanted: Need, usable: int, taken: int
) -> tuple[int | None, int | None]:
    """Bytes left for the cache over all cards, each token counted once, and tokens in them."""
    shape, cache = question.model.shape, wanted.part("kv_cache_bytes")
    if shape is None or cache is None:
        return None, None
    each = max(usable - (taken - cache.per_gpu_bytes), 0)
    if question.engine.parallel == "tensor":
        room = each * kv_pieces(shape, wanted.gpus)
    else:  # the fullest GPU decides; it holds the cache of its layers
        room = round(each * cache.bytes / cache.per_gpu_bytes)
    if shape.window and shape.sliding_layers and question.context > shape.window:
        one = sequence_bytes(shape, question.context, question.kv_bytes, question.engine.block)
        return room, int(room / one * question.context)
    return room, tokens_in(shape, room, question.kv_bytes, question.engine.block)


def _notes(
    question: Question, gpu: Gpu | None, count: int, wanted: Need, headroom: float
) -> Iterator[str]:
    if not wanted.complete:
        yield "at least: the model's shape is not known, so cache and activations are not counted"
    if 0 <= headroom < constant("tight_headroom_ratio"):
        yield f"tight: {headroom:.1%} left"
    if count > 1 and question.training:
        stage = wanted.zero or 0
        if question.request.zero is None:
            yield f"with ZeRO stage {stage} over {count} GPUs (--zero for another)"
        elif stage == 0:
            yield "without ZeRO each GPU holds everything: more GPUs only add batches"
    if count > 1 and not question.training and question.engine.parallel == "layers":
        yield "cut by layers: the GPUs answer one after another, no faster than one"
    if gpu is None:
        return
    if count > 1 and not gpu.has_nvlink:
        yield "this card has no NVLink: the cards talk over PCIe"
    if not gpu.bf16:
        yield "no BF16 on this card: FP16 instead"
    if question.quant.name == "fp8" and not gpu.fp8:
        yield "no FP8 arithmetic on this card: it saves memory, not time"
    if gpu.unified_memory:
        yield "unified memory: the system takes its part of it"
    if unsure := [fact for fact in gpu.unverified if fact.startswith("memory.")]:
        yield f"not confirmed by a public document: {', '.join(unsure)}"


def refuse_impossible(question: Question) -> None:
    """Raises PlanError where the GPUs asked for cannot be used, with the counts that can."""
    asked = question.request.gpus
    if asked is None or question.training or question.engine.parallel != "tensor":
        return
    possible = tensor_parallel_counts(question.model, max(asked, MOST_GPUS))
    if asked not in possible:
        shape = question.model.shape
        heads = f"{shape.heads} heads, {shape.kv_heads} KV heads" if shape is not None else ""
        raise PlanError(
            f"--gpus {asked}: {question.model.name} ({heads}) cannot be cut over {asked} GPUs; "
            f"give one of {', '.join(map(str, possible))}"
        )
