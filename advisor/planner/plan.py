"""The planner's answer: parts, total, cards that fit, and what the guides say."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.planner.data import quants
from advisor.planner.documents import Claim, claims
from advisor.planner.fit import Fit, fits, refuse_impossible
from advisor.planner.need import Need, Part, need
from advisor.planner.request import Question, Request, check

# What a smaller storage of the weights is looked for among, when a card is too small.
SMALLER_QUANTS = ("fp8", "int8", "awq", "q4_k_m")


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer to a Request.

    The parts are sums over `gpus` cards and `total_bytes` is the sum of the parts;
    `per_gpu_bytes` is what the fullest GPU holds. `transient_bytes` comes on top for a moment
    while a prompt is read whole. `complete` is False where the model's shape is not known: cache,
    activations and overhead are then not in the parts. `smaller_quants` hold on the card that was
    asked for, where the question's own weights do not.
    """

    question: Question
    need: Need
    fits: tuple[Fit, ...]
    does_not_fit: tuple[Fit, ...]
    smaller_quants: tuple[str, ...]
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]

    @property
    def gpus(self) -> int:
        return self.need.gpus

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.need.parts

    @property
    def total_bytes(self) -> int:
        return self.need.total_bytes

    @property
    def per_gpu_bytes(self) -> int:
        return self.need.per_gpu_bytes

    @property
    def transient_bytes(self) -> int:
        return self.need.transient_bytes

    @property
    def complete(self) -> bool:
        return self.need.complete

    def bytes_of(self, part: str) -> int | None:
        """Bytes of a part by its name ("weights_bytes"); None where it is not there."""
        found = self.need.part(part)
        return found.bytes if found is not None else None


def plan(request: Request) -> Plan:
    """Plans memory and cards. Raises PlanError with one line that says what to give."""
    question = check(request)
    refuse_impossible(question)
    card = request.gpu_memory_bytes
    if card is None and request.gpu is not None:
        card = request.gpu.memory_bytes
    wanted = need(question, request.gpus or 1, card)
    holding, failing = fits(question)
    return Plan(
        question=question,
        need=wanted,
        fits=holding,
        does_not_fit=failing,
        smaller_quants=_smaller(question, failing[0].count) if failing else (),
        claims=claims(question, wanted),
        notes=tuple(_notes(question, wanted)),
    )


def _smaller(question: Question, gpus: int) -> tuple[str, ...]:
    """The smaller storages of the weights that hold on so many of the card asked for."""
    if question.training:
        return ()
    bits = question.quant.linear
    names = [item.name for item in quants() if item.name in SMALLER_QUANTS and item.linear < bits]
    found = []
    for name in names:
        holding, _ = fits(check(replace(question.request, quant=name, gpus=gpus)))
        if holding:
            found.append(name)
    return tuple(found)


def _notes(question: Question, wanted: Need) -> list[str]:
    model = question.model
    notes = [*question.notes, *model.notes]
    if not wanted.complete:
        notes.append(
            f"the shape of {model.name} is not known: cache, activations and overhead are not "
            "counted (give its config.json, or --layers, --hidden-size, --heads, --kv-heads, "
            "--head-dim, --vocab and --intermediate-size)"
        )
    if not model.verified:
        notes.append(f"the shape of {model.name} is not confirmed by a published file")
    if question.training and wanted.gpus > 1 and question.request.zero is None:
        notes.append(f"ZeRO stage 3 over {wanted.gpus} GPUs assumed (--zero)")
    if question.training and wanted.complete:
        notes.append(
            "training: published totals are met within a quarter (docs/planner.md); measure the "
            "first steps before buying"
        )
    if wanted.transient_bytes:
        notes.append(
            f"reading {question.users} x {question.context} tokens at once takes "
            f"{wanted.transient_bytes / (1 << 30):.1f} GiB more for a moment; the cards that fit "
            "have room for it"
        )
    return notes
