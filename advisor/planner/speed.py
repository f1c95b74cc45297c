"""How fast tokens can come at most: what every step must read, over the memory's bandwidth."""

from __future__ import annotations

from advisor.planner.kv_cache import kv_pieces, sequence_bytes
from advisor.planner.request import Question


def decode_ceiling(
    question: Question, gpus: int, bandwidth_bytes_per_second: float
) -> float | None:
    """Tokens per second of one sequence, at most; None without a shape.

    A step reads the weights that its sequences touch (of a mixture, the experts that any of them
    uses) and every sequence's cache. Compute, links and scheduling only make it slower. Cut by
    layers, the GPUs work one after another.
    """
    shape, stored = question.model.shape, question.quant
    if shape is None:
        return None
    tensor = question.engine.parallel == "tensor"
    dense_bits = 16.0 if stored.experts_only and shape.experts else stored.linear
    weights = (shape.attention_parameters + shape.mlp_parameters) * dense_bits / 8
    if shape.experts:
        idle = (1 - shape.experts_per_token / shape.experts) ** question.users
        weights += shape.expert_parameters * (1 - idle) * stored.linear / 8
    head = shape.embedding_parameters * stored.head / 8  # a tied head is the embedding, read whole
    cache = question.users * sequence_bytes(shape, question.context, question.kv_bytes)
    cut = gpus if tensor else 1
    pieces = kv_pieces(shape, gpus) if tensor else 1
    return bandwidth_bytes_per_second / ((weights + head) / cut + cache / pieces)
