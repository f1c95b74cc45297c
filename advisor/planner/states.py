"""Bytes of training states (weights, gradients, optimiser, adapters) under each ZeRO stage."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.catalogue import Model, Shape
from advisor.planner.data import PlanError, Recipe, constant

# Of the adapter's bytes: 32-bit weight, gradient, two moments.
ADAPTER_WEIGHT, ADAPTER_GRADIENT, ADAPTER_OPTIMIZER = 0.25, 0.25, 0.5
# Trained copies of embedding and output layer (PEFT modules_to_save): 16-bit weight and gradient,
# 32-bit moments; 10.9 B each are published (Qwen-7B LoRA with and without embeddings).
SAVED_WEIGHT, SAVED_GRADIENT, SAVED_OPTIMIZER = 2.0, 2.0, 8.0


@dataclass(frozen=True, slots=True)
class States:
    """Bytes on each GPU."""

    weights: float
    gradients: float
    optimizer: float
    adapters: float
    how: str


def full_states(model: Model, recipe: Recipe, stage: int, gpus: int) -> States:
    """All weights trained. P parameters, N GPUs; DeepSpeed's estimators for the mixed recipe:

    stage 2: 4P + 16P/N; stage 3: 18P/N + 4 x largest layer.
    """
    count, size = model.parameters, recipe
    largest = largest_layer(model)
    if stage == 0:
        gradients = (size.accumulated or size.gradients) * count
        weights, optimizer = size.weights * count, size.optimizer * count
    elif stage == 3:
        accumulated = size.accumulated or size.gradients
        weights = size.weights * (count / gpus + largest)
        gradients = accumulated * count / gpus + size.gradients * largest
        optimizer = size.optimizer * count / gpus
    else:
        weights, optimizer = size.weights * count, size.optimizer * count / gpus
        kept = size.gradients if size.accumulated or stage == 1 else size.gradients / gpus
        gradients = kept * count + size.accumulated * count / gpus
    how = (
        f"{count:,} parameters: {size.weights:g} B weights, "
        f"{size.accumulated or size.gradients:g} B gradients, {size.optimizer:g} B optimiser "
        f"({recipe.name}), ZeRO {stage} over {gpus}"
    )
    return States(weights, gradients, optimizer, 0.0, how)


def adapter_states(
    model: Model, weights: float, rank: int, train_embeddings: bool, stage: int, gpus: int
) -> States:
    """Frozen weights of `weights` bytes with trained adapters. Raises PlanError without a shape."""
    shape = model.shape
    if shape is None:
        raise PlanError(
            f"{model.name}: LoRA adapters follow the model's shape, which is not known; "
            "give its config.json"
        )
    adapters = adapter_parameters(shape, rank)
    saved = shape.embedding_parameters + shape.head_parameters if train_embeddings else 0
    cut_weights = gpus if stage == 3 else 1
    cut_gradients = gpus if stage >= 2 else 1
    cut_optimizer = gpus if stage >= 1 else 1
    each = constant("adapter_state_bytes")
    base = weights / cut_weights
    if stage == 3:
        base += 2.0 * largest_layer(model)
    gradients = adapters * each * ADAPTER_GRADIENT + saved * SAVED_GRADIENT
    optimizer = adapters * each * ADAPTER_OPTIMIZER + saved * SAVED_OPTIMIZER
    own = adapters * each * ADAPTER_WEIGHT + saved * SAVED_WEIGHT
    where = "attention and shared layers, experts frozen" if shape.experts else "every linear layer"
    how = (
        f"rank {rank} on {where}: {adapters:,} adapter parameters, for each "
        f"{each * ADAPTER_WEIGHT:g} B weight, {each * ADAPTER_GRADIENT:g} B gradient, "
        f"{each * ADAPTER_OPTIMIZER:g} B optimiser"
    )
    if saved:
        how += f"; {saved:,} embedding parameters x 12 B"
    return States(
        base, gradients / cut_gradients, optimizer / cut_optimizer, own / cut_weights, how
    )


def adapter_parameters(shape: Shape, rank: int) -> int:
    """rank x (inputs + outputs) of every adapted matrix of every layer."""
    hidden, value = shape.hidden, shape.value_dim or shape.head_dim
    queries, out = shape.heads * shape.query_dim, shape.heads * value
    if shape.latent_width is None:
        keys, values = shape.kv_heads * shape.head_dim, shape.kv_heads * value
        attention = (hidden + queries) + (hidden + keys) + (hidden + values)
    else:
        latent, entry = shape.latent_width, shape.query_latent_width
        attention = hidden + latent + shape.rope_dim
        attention += latent + shape.heads * (shape.head_dim + value)
        attention += (hidden + entry) + (entry + queries) if entry else hidden + queries
    attention += out + hidden
    mlp = shape.dense * shape.mlp_matrices * (hidden + shape.mlp_width)
    if shape.shared_width:
        mlp += (shape.layers - shape.dense) * shape.mlp_matrices * (hidden + shape.shared_width)
    return rank * (shape.layers * attention + mlp)


def largest_layer(model: Model) -> int:
    """Parameters of the largest single weight; 0 where nothing tells."""
    if model.largest_layer_parameters is not None:
        return model.largest_layer_parameters
    return model.shape.largest_layer_parameters if model.shape is not None else 0
