"""What a question takes over a number of GPUs: the parts, their sum, and one GPU's share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.catalogue import Shape
from advisor.planner.activations import inference_bytes, prefill_bytes, training_bytes
from advisor.planner.data import PlanError, constant
from advisor.planner.kv_cache import kv_pieces, layer_bytes_per_token, sequence_bytes
from advisor.planner.request import Question
from advisor.planner.states import adapter_states, full_states, largest_layer
from advisor.planner.weights import tensor_parallel_refusal, weights_bytes, weights_per_gpu

PARTS = (
    "weights_bytes",
    "kv_cache_bytes",
    "activation_bytes",
    "optimizer_bytes",
    "gradient_bytes",
    "adapter_bytes",
    "overhead_bytes",
)


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes over all GPUs and on the fullest of them, and how they were computed."""

    name: str
    bytes: int
    per_gpu_bytes: int
    how: str


@dataclass(frozen=True, slots=True)
class Need:
    """The parts over `gpus` cards. A part that is not known is not there.

    `transient_bytes` comes on top for a moment on one GPU, while a prompt is read whole.
    `context_bytes` is what lies outside the share of a card that an engine fills. Without a shape
    the parts are weights and training states alone, and `complete` is False.
    """

    gpus: int
    parts: tuple[Part, ...]
    transient_bytes: int
    context_bytes: int
    zero: int | None
    complete: bool

    @property
    def total_bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def per_gpu_bytes(self) -> int:
        return sum(part.per_gpu_bytes for part in self.parts)

    def part(self, name: str) -> Part | None:
        return next((part for part in self.parts if part.name == name), None)


def need(question: Question, gpus: int, card_bytes: int | None = None) -> Need:
    """What `question` takes over `gpus` cards of `card_bytes` (None: of any size).

    Raises PlanError where the model cannot be cut over so many.
    """
    return (
        _training(question, gpus) if question.training else _inference(question, gpus, card_bytes)
    )


def zero_stage(question: Question, gpus: int) -> int:
    """The stage asked for; where none is, everything is sharded as soon as there are two GPUs."""
    if question.request.zero is not None:
        return question.request.zero
    return 3 if gpus > 1 else 0


def _inference(question: Question, gpus: int, card_bytes: int | None) -> Need:
    model, engine, shape = question.model, question.engine, question.model.shape
    tensor = engine.parallel == "tensor"
    if tensor and (refusal := tensor_parallel_refusal(model, gpus)) is not None:
        raise PlanError(f"--gpus {gpus}: {refusal}")
    each, total = weights_per_gpu(model, question.quant, engine.parallel, gpus)
    parts = [Part("weights_bytes", total, each, _weights_how(question))]
    transient = 0
    if shape is not None:
        parts.append(_cache(question, shape, gpus, tensor))
        activation, how = inference_bytes(shape, engine, question.users, gpus, card_bytes, tensor)
        parts.append(Part("activation_bytes", activation * gpus, activation, how))
        transient = prefill_bytes(shape, engine, question.users * question.context)
    context = round(constant("cuda_context_bytes"))
    extra = round(constant("vllm_non_torch_bytes")) if engine.prefill == "chunked" else 0
    how = "CUDA context" + (" + NCCL and attention workspaces" if extra else "")
    parts.append(
        Part("overhead_bytes", (context + extra) * gpus, context + extra, f"{how}, each GPU")
    )
    return Need(gpus, tuple(parts), transient, context, None, shape is not None)


def _cache(question: Question, shape: Shape, gpus: int, tensor: bool) -> Part:
    one = sequence_bytes(shape, question.context, question.kv_bytes, question.engine.block)
    whole = question.users * one
    if gpus == 1:
        each, total = whole, whole
    elif tensor:
        each = whole / kv_pieces(shape, gpus)
        total = each * gpus
    else:
        each, total = whole * math.ceil(shape.layers / gpus) / shape.layers, whole
    token = layer_bytes_per_token(shape, question.kv_bytes)
    how = (
        f"{question.users} sequences x {question.context} tokens x {shape.layers} layers x "
        f"{token:,.0f} B"
    )
    if shape.window and shape.sliding_layers and question.context > shape.window:
        how += f", {shape.sliding_layers} layers holding at most {shape.window} tokens"
    if round(total) > round(whole):
        how += f", held {total / whole:.3g} times: {shape.kv_heads} KV heads over {gpus} GPUs"
    return Part("kv_cache_bytes", round(total), round(each), how)


def _training(question: Question, gpus: int) -> Need:
    model, request, shape = question.model, question.request, question.model.shape
    stage = zero_stage(question, gpus)
    if question.task == "full":
        states = full_states(model, question.recipe, stage, gpus)
    else:
        states = adapter_states(
            model,
            weights_bytes(model, question.quant),
            request.lora_rank,
            request.train_embeddings,
            stage,
            gpus,
        )
    weights_how = states.how if question.task == "full" else _weights_how(question)
    if question.task != "full" and stage == 3 and gpus > 1:
        weights_how += f", cut over {gpus} GPUs (ZeRO 3)"
    parts = [_each("weights_bytes", states.weights, gpus, weights_how)]
    if shape is not None:
        element = 4.0 if question.recipe.name == "fp32" else 2.0
        activation, how = training_bytes(
            shape,
            request.batch,
            request.sequence,
            checkpointing=request.checkpointing,
            chunks=request.loss_chunks,
            element=element,
        )
        parts.append(_each("activation_bytes", activation, gpus, how))
    parts.append(_each("optimizer_bytes", states.optimizer, gpus, states.how))
    parts.append(_each("gradient_bytes", states.gradients, gpus, states.how))
    if states.adapters:
        parts.append(_each("adapter_bytes", states.adapters, gpus, states.how))
    context = round(constant("cuda_context_bytes"))
    if shape is not None:
        overhead = context + constant("training_workspace_bytes")
        how = "CUDA context + workspace"
        if stage == 3:
            # The largest layer is one of the gathered, and is already among the weights.
            live = min(constant("zero3_live_parameters"), model.parameters)
            live = max(live - largest_layer(model), 0)
            overhead += 2.0 * live
            how += f" + {live:,.0f} more gathered parameters x 2 B (ZeRO 3)"
        parts.append(_each("overhead_bytes", overhead, gpus, f"{how}, each GPU"))
    else:  # model states alone, as DeepSpeed's and accelerate's estimators count them
        parts.append(Part("overhead_bytes", 0, 0, "not counted: model states alone"))
    return Need(gpus, tuple(parts), 0, context, stage, shape is not None)


def _each(name: str, per_gpu: float, gpus: int, how: str) -> Part:
    each = round(per_gpu)
    return Part(name, round(per_gpu * gpus), each, how)


def _weights_how(question: Question) -> str:
    model, stored, shape = question.model, question.quant, question.model.shape
    if shape is None:
        return f"{model.parameters:,} parameters x {stored.linear:g} bits"
    if stored.experts_only and shape.experts:
        rest = model.parameters - shape.expert_parameters
        return (
            f"{shape.expert_parameters:,} expert parameters x {stored.linear:g} bits + "
            f"{rest:,} others x 16 bits"
        )
    outside = shape.embedding_parameters + shape.head_parameters
    how = (
        f"{shape.linear_parameters:,} linear x {stored.linear:g} bits + {outside:,} embedding and "
        f"head x {stored.embedding:g} bits"
    )
    other = shape.other_parameters + model.extra_parameters
    return f"{how} + {other:,} others x {stored.other:g} bits" + (
        " (tied embeddings)" if shape.tied else ""
    )
