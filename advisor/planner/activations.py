"""Bytes of activations and logits, while answering and while training."""

from __future__ import annotations

from advisor.catalogue import Shape
from advisor.planner.data import Engine, constant

SIXTEEN_BIT = 2.0


def forward_bytes_per_token(shape: Shape, gpus: int = 1) -> float:
    """What one token of a prompt holds at the widest point of a layer, 16-bit, on each GPU.

    The residual stream and its copy, beside the MLP's branches and their product; of a mixture,
    those of the experts that the token uses. Attention is narrower in every model that we know,
    and is counted where it is not.
    """
    widths = [shape.mlp_width] if shape.dense else []
    if shape.experts:
        widths.append(shape.experts_per_token * shape.expert_width + shape.shared_width)
    mlp = max(widths) * shape.mlp_matrices
    queries = shape.heads * shape.query_dim
    keys = 2 * shape.kv_heads * shape.head_dim if shape.latent_width is None else queries
    return SIXTEEN_BIT * (2 * shape.hidden + max(mlp, queries + keys) / gpus)


def logits_bytes(shape: Shape, sequences: int, gpus: int = 1) -> float:
    return constant("logits_inference_bytes") * sequences * shape.vocabulary / gpus


def inference_bytes(
    shape: Shape, engine: Engine, users: int, gpus: int, card_bytes: int | None, tensor: bool
) -> tuple[int, str]:
    """What an engine holds for activations on each GPU in its steady state, and how it follows.

    An engine that takes a share of the card reserves for its largest step: so many batched tokens,
    or the logits of all sequences. llama.cpp reserves for one physical batch. Transformers holds a
    decode step: one token a sequence.
    """
    cut = gpus if tensor else 1
    if engine.prefill == "chunked":
        tokens = batched_tokens(card_bytes)
        sequences = max(users, int(constant("sequences_profiled")))
        step = forward_bytes_per_token(shape, cut) * tokens
        logits = logits_bytes(shape, sequences, cut)
        how = (
            f"the larger of {tokens} tokens a step x {forward_bytes_per_token(shape, cut):,.0f} B "
            f"and {sequences} sequences' logits ({logits:,.0f} B)"
        )
        return round(max(step, logits)), how
    if engine.prefill == "ubatch":
        tokens = int(constant("llamacpp_ubatch"))
        reserved = tokens * 4 * (shape.vocabulary + shape.hidden)
        return reserved, f"{tokens} tokens x 4 B x (vocabulary + hidden size)"
    step = users * forward_bytes_per_token(shape) + logits_bytes(shape, users)
    how = f"cuBLAS workspace + one token of {users} sequences with its logits"
    return round(constant("cublas_workspace_bytes") + step), how


def batched_tokens(card_bytes: int | None) -> int:
    large = card_bytes is not None and card_bytes >= constant("large_card_bytes")
    return int(constant("batched_tokens_large" if large else "batched_tokens"))


def prefill_bytes(shape: Shape, engine: Engine, prompt_tokens: int) -> int:
    """What reading whole prompts takes for a moment, beyond the steady state.

    Only of engines that read the prompts of a batch at once; others stay in their reservation.
    """
    if engine.prefill != "whole":
        return 0
    return round(forward_bytes_per_token(shape) * prompt_tokens)


def training_bytes(
    shape: Shape, batch: int, sequence: int, *, checkpointing: bool, chunks: int, element: float
) -> tuple[int, str]:
    """Activations and logits of one GPU's batch, and how they follow.

    With recomputation: each layer's input, and the larger of one layer's activations and the
    logits, which are not alive together. Without: all layers' activations, and the logits.
    `element` is the size of a number: activations in FP32 are twice those in 16 bits.
    """
    tokens, wide = batch * sequence, element / SIXTEEN_BIT
    layer = layer_bytes_per_token(shape) * tokens * wide
    logits = constant("logits_training_bytes") * shape.vocabulary * tokens / chunks
    in_pieces = f" in {chunks} pieces" if chunks > 1 else ""
    if checkpointing:
        inputs = constant("checkpoint_bytes_per_hidden") * shape.hidden * shape.layers * tokens
        how = (
            f"{tokens} tokens: 2 B x hidden x layers kept, and the larger of one layer "
            f"({layer:,.0f} B) and the logits{in_pieces} ({logits:,.0f} B)"
        )
        return round(inputs * wide + max(layer, logits)), how
    how = f"{tokens} tokens: {shape.layers} layers of {layer:,.0f} B, and logits{in_pieces}"
    return round(layer * shape.layers + logits), how


def layer_bytes_per_token(shape: Shape) -> float:
    """Stored activations of one layer, 16-bit: 34 B x hidden (Korthikanti et al.).

    In a mixture of experts the MLP's share is scaled to the width that a token really uses.
    """
    whole = constant("activation_bytes_per_hidden") * shape.hidden
    if not shape.experts:
        return whole
    share = constant("activation_bytes_per_hidden_mlp")
    used = shape.experts_per_token * shape.expert_width + shape.shared_width
    return whole + share * (used / 4 - shape.hidden)
