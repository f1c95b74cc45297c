"""What must hold of every plan, whatever the model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.catalogue import Model, Shape, models
from advisor.planner import (
    PARTS,
    Request,
    kv_bytes_per_token,
    plan,
    quant,
    tensor_parallel_counts,
    weights_bytes,
)
from advisor.planner.need import need
from advisor.planner.request import check
from advisor.planner.weights import weights_per_gpu

QUANTS_BY_WIDTH = ("nf4-dq", "nf4", "fp8", "bf16", "fp32")


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    kv_heads = draw(st.sampled_from([1, 2, 4, 8]))
    heads = kv_heads * draw(st.sampled_from([1, 2, 4, 8]))
    head_dim = draw(st.sampled_from([64, 128, 256]))
    experts = draw(st.sampled_from([0, 0, 8, 64]))
    layers = draw(st.integers(1, 96))
    window = draw(st.sampled_from([None, 128, 4096]))
    return Shape(
        layers=layers,
        hidden=heads * head_dim,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocabulary=draw(st.integers(1_000, 260_000)),
        mlp_width=draw(st.integers(256, 50_000)),
        tied=draw(st.booleans()),
        dense_layers=draw(st.integers(0, layers)) if experts else None,
        experts=experts,
        experts_per_token=min(experts, draw(st.integers(1, 8))),
        expert_width=draw(st.integers(128, 8_000)) if experts else 0,
        shared_width=draw(st.sampled_from([0, 2048])) if experts else 0,
        latent_width=512 if draw(st.booleans()) and not experts else None,
        rope_dim=64,
        window=window,
        sliding_layers=draw(st.integers(0, layers)) if window else 0,
    )


def of(shape: Shape) -> Model:
    return Model(name="drawn", parameters=shape.parameters, shape=shape)


requests = st.builds(
    lambda shape, task, engine, users, context, batch, sequence: Request(
        model=of(shape),
        task=task,
        engine=engine,
        users=users,
        context=context,
        batch=batch,
        sequence=sequence,
    ),
    shapes(),
    st.sampled_from(["inference", "lora", "qlora", "full"]),
    st.sampled_from(["vllm", "hf", "sglang", "llamacpp"]),
    st.integers(1, 500),
    st.integers(1, 200_000),
    st.integers(1, 16),
    st.integers(1, 32_768),
)


def total(request: Request, gpus: int = 1) -> int:
    return need(check(request), gpus).total_bytes


@given(requests)
@settings(max_examples=60, deadline=None)
def test_the_parts_add_up(request: Request) -> None:
    answer = need(check(request), 1)
    assert answer.total_bytes == sum(part.bytes for part in answer.parts) == answer.per_gpu_bytes
    assert all(part.bytes >= 0 and part.name in PARTS and part.how for part in answer.parts)


@given(requests, st.integers(1, 100), st.integers(1, 5_000))
@settings(max_examples=60, deadline=None)
def test_more_users_or_context_never_take_less(request: Request, users: int, tokens: int) -> None:
    assert total(replace(request, users=(request.users or 1) + users)) >= total(request)
    assert total(replace(request, context=(request.context or 1) + tokens)) >= total(request)
    assert total(replace(request, batch=request.batch + users)) >= total(request)
    assert total(replace(request, sequence=request.sequence + tokens)) >= total(request)


@given(shapes(), st.integers(1, 16))
@settings(max_examples=60, deadline=None)
def test_more_layers_never_take_less(shape: Shape, more: int) -> None:
    larger = replace(shape, layers=shape.layers + more)
    assert larger.parameters > shape.parameters
    for task in ("inference", "lora", "full"):
        assert total(Request(of(larger), task=task)) > total(Request(of(shape), task=task))


@given(shapes())
@settings(max_examples=60, deadline=None)
def test_more_bits_never_take_less(shape: Shape) -> None:
    sizes = [weights_bytes(of(shape), name) for name in QUANTS_BY_WIDTH]
    assert sizes == sorted(sizes)
    wide, narrow = kv_bytes_per_token(of(shape), "bf16"), kv_bytes_per_token(of(shape), "fp8")
    assert wide is not None
    assert narrow == wide / 2


@given(shapes(), st.sampled_from(QUANTS_BY_WIDTH))
@settings(max_examples=80, deadline=None)
def test_tensor_parallel_never_raises_a_gpus_weights(shape: Shape, name: str) -> None:
    shares = [
        weights_per_gpu(of(shape), quant(name), "tensor", gpus)
        for gpus in tensor_parallel_counts(of(shape), 8)
    ]
    each = [share for share, _ in shares]
    assert each == sorted(each, reverse=True)
    # Cut into pieces, nothing is lost: over all GPUs there is at least the whole model.
    assert all(whole >= weights_bytes(of(shape), name) - 8 for _, whole in shares)


@given(shapes(), st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=60, deadline=None)
def test_sharding_more_never_takes_more_on_a_gpu(shape: Shape, gpus: int) -> None:
    def states(stage: int) -> int:
        answer = need(check(Request(of(shape), task="full", zero=stage, recipe="pure-bf16")), gpus)
        kept = ("weights_bytes", "gradient_bytes", "optimizer_bytes")
        return sum(part.per_gpu_bytes for part in answer.parts if part.name in kept)

    assert states(0) >= states(1) >= states(2)


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
@pytest.mark.parametrize("task", ["inference", "full"])
def test_every_model_of_the_catalogue_can_be_planned(model: Model, task: str) -> None:
    answer = plan(Request(model, task="inference" if task == "inference" else "full"))
    assert answer.total_bytes > 0
    for fit in answer.fits:
        assert 0 <= fit.headroom_ratio <= 1
        assert fit.need_per_gpu_bytes <= fit.usable_per_gpu_bytes < fit.total_memory_bytes
    totals = [fit.total_memory_bytes for fit in answer.fits]
    assert totals == sorted(totals)
