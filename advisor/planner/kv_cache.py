"""Bytes of the KV cache: what a live token costs, and what sequences hold."""

from __future__ import annotations

import math

from advisor.catalogue import Model, Shape
from advisor.planner.data import PlanError
from advisor.planner.request import KV_BYTES


def kv_bytes_per_token(model: Model, kv_dtype: str = "bf16") -> float | None:
    """Bytes that one more token costs while no window is full; None without a shape.

    2 x layers x KV heads x head size x bytes; with latent attention, layers x (compressed width +
    rope) x bytes. Raises PlanError for an unknown type.
    """
    if kv_dtype not in KV_BYTES:
        raise PlanError(f"--kv-dtype {kv_dtype}: give one of {', '.join(KV_BYTES)}")
    if model.shape is None:
        return None
    return model.shape.layers * layer_bytes_per_token(model.shape, KV_BYTES[kv_dtype])


def layer_bytes_per_token(shape: Shape, element_bytes: float) -> float:
    if shape.latent_width is not None:
        return (shape.latent_width + shape.rope_dim) * element_bytes
    width = shape.head_dim + (shape.value_dim or shape.head_dim)
    return shape.kv_heads * width * element_bytes


def sequence_bytes(shape: Shape, tokens: int, element_bytes: float, block: int = 1) -> float:
    """Cache of one sequence: full layers hold all its tokens, sliding ones at most the window.

    Both are rounded up to the engine's block.
    """
    each = layer_bytes_per_token(shape, element_bytes)
    full = (shape.layers - shape.sliding_layers) * _rounded(tokens, block)
    windowed = min(tokens, shape.window) if shape.window else tokens
    return each * (full + shape.sliding_layers * _rounded(windowed, block))


def kv_pieces(shape: Shape, gpus: int) -> int:
    """Over how many GPUs the cache is really divided; beyond that it is held more than once."""
    return 1 if shape.latent_width is not None else min(gpus, shape.kv_heads)


def tokens_in(shape: Shape, available: float, element_bytes: float, block: int) -> int:
    """Tokens in a cache of so many bytes, in whole blocks, while no window is full."""
    each = shape.layers * layer_bytes_per_token(shape, element_bytes) * block
    return max(int(available // each), 0) * block


def _rounded(tokens: int, block: int) -> int:
    return math.ceil(tokens / block) * block
