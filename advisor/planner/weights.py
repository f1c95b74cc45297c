"""Bytes of a model's weights: parameters times bits, group by group."""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.catalogue import Model
from advisor.planner.data import Parallel, PlanError, Quant, quant


@dataclass(frozen=True, slots=True)
class Groups:
    """Bytes of each kind of weight. `kv` is the part of `linear` that follows the KV heads."""

    linear: float
    kv: float
    embedding: float
    head: float
    other: float

    @property
    def total(self) -> float:
        return self.linear + self.embedding + self.head + self.other


def groups(model: Model, stored: Quant) -> Groups:
    """Parameters of each group x bits / 8. Without a shape everything counts as linear."""
    shape = model.shape
    if shape is None:
        if stored.experts_only:
            raise PlanError(f"{stored.name} needs the model's shape: give its config.json")
        return Groups(model.parameters * stored.linear / 8, 0.0, 0.0, 0.0, 0.0)
    only_experts = stored.experts_only and shape.experts > 0
    reached = shape.expert_parameters if only_experts else shape.linear_parameters
    left = shape.linear_parameters - reached
    outside = 16.0 if only_experts else stored.linear
    embedding = shape.embedding_parameters * stored.embedding
    if shape.tied:  # one matrix: stored at the better of the two widths
        embedding = shape.embedding_parameters * max(stored.embedding, stored.head)
    return Groups(
        linear=(reached * stored.linear + left * 16.0) / 8,
        kv=shape.layers * shape.kv_projection_layer * outside / 8,
        embedding=embedding / 8,
        head=shape.head_parameters * stored.head / 8,
        other=(shape.other_parameters + model.extra_parameters) * stored.other / 8,
    )


def weights_bytes(model: Model, stored: Quant | str = "bf16") -> int:
    """Bytes of the weights, held once. Raises PlanError for an unknown quantisation."""
    return round(groups(model, quant(stored) if isinstance(stored, str) else stored).total)


def weights_per_gpu(model: Model, stored: Quant, parallel: Parallel, gpus: int) -> tuple[int, int]:
    """The largest share of one GPU, and the sum over all of them.

    Tensor parallel cuts every linear layer and the vocabulary; key and value projections can only
    be cut into as many pieces as there are KV heads, and replicate beyond that; norms and a vision
    tower are on every GPU. By layers, the first GPU holds the embedding and the last the head.
    """
    parts, shape = groups(model, stored), model.shape
    if gpus == 1 or shape is None:
        return math.ceil(parts.total / gpus), round(parts.total)
    if parallel == "layers":
        layers = math.ceil(shape.layers / gpus) / shape.layers
        ends = max(parts.embedding, parts.head) + parts.other
        return round(min(parts.linear * layers + ends, parts.total)), round(parts.total)
    pieces = 1 if shape.latent_width is not None else min(gpus, shape.kv_heads)
    cut = (parts.linear - parts.kv + parts.embedding + parts.head) / gpus
    each = round(cut + parts.kv / pieces + parts.other)
    return each, each * gpus


def tensor_parallel_refusal(model: Model, gpus: int) -> str | None:
    """Why a model cannot be cut over so many GPUs, or None."""
    shape = model.shape
    if shape is None or gpus == 1:
        return None
    if shape.heads % gpus:
        return f"{shape.heads} attention heads do not divide over {gpus} GPUs"
    divides = shape.kv_heads % gpus == 0 or gpus % shape.kv_heads == 0
    if shape.latent_width is None and not divides:
        return f"{shape.kv_heads} KV heads neither divide over {gpus} GPUs nor replicate evenly"
    return None


def tensor_parallel_counts(model: Model, most: int) -> list[int]:
    """The GPU counts over which a model can be cut, up to `most`."""
    return [n for n in range(1, most + 1) if tensor_parallel_refusal(model, n) is None]
