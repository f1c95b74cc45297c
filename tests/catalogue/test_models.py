"""Models by the names that hubs, paths and engines use."""

from __future__ import annotations

import pytest

from advisor.catalogue import find_model, models, quant_in_name


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "Llama-3.1-70B"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "Llama-3-8B"),
        ("TheBloke/Llama-2-70B-AWQ", "Llama-2-70B"),
        ("TheBloke/Llama-2-13B-chat-GPTQ", "Llama-2-13B"),
        ("meta-llama/Llama-2-7b-chat-hf", "Llama-2-7B"),
        ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "Llama-3.1-70B"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "Mistral-7B-v0.3"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "Mixtral-8x7B"),
        ("mistralai/Mistral-Small-24B-Instruct-2501", "Mistral-Small-24B"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "Qwen3-30B-A3B"),
        ("Qwen/Qwen2.5-Coder-32B-Instruct", "Qwen2.5-32B"),
        ("Qwen-1_8B-Chat", "Qwen-1.8B"),
        ("google/gemma-3-27b-it", "Gemma-3-27B"),
        ("microsoft/phi-4", "Phi-4"),
        ("deepseek-ai/DeepSeek-R1", "DeepSeek-V3"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "Llama-3.3-70B"),
        ("/srv/models/models--Qwen--Qwen3-8B/snapshots/9c925d64", "Qwen3-8B"),
        ("/data/llama-3.1-8b-instruct-q4_k_m.gguf", "Llama-3.1-8B"),
        ("/opt/models/Llama-3.3-70B-Instruct/", "Llama-3.3-70B"),
        ("llama3.1:8b-instruct-q4_K_M", "Llama-3.1-8B"),
        ("gpt-oss:20b", "gpt-oss-20b"),
        ("bigscience/T0_3B", "T0_3B"),
    ],
)
def test_names(name: str, found: str) -> None:
    model = find_model(name)
    assert model is not None
    assert model.name == found


@pytest.mark.parametrize(
    "name",
    ["", "/", "acme/llama-3.1-8b-support-bot", "llama", "Qwen3-9B", "gpt-4", "my-model", "8b"],
)
def test_a_name_that_only_resembles_one_is_not_found(name: str) -> None:
    assert find_model(name) is None


def test_every_model_finds_itself_and_has_a_source() -> None:
    assert len({model.name for model in models()}) == len(models())
    for model in models():
        assert find_model(model.name) is model
        assert model.source


@pytest.mark.parametrize(
    ("name", "quant"),
    [
        ("TheBloke/Llama-2-70B-AWQ", "awq"),
        ("llama3.1:8b-instruct-q4_K_M", "q4_k_m"),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8", "int8"),
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "gptq"),
        ("Qwen/Qwen3-8B", None),
    ],
)
def test_quantisation_in_a_name(name: str, quant: str | None) -> None:
    assert quant_in_name(name) == quant


# Published totals, in billions (model cards and technical reports).
PUBLISHED = {
    "Llama-2-7B": 6.738,
    "Llama-3.1-8B": 8.030,
    "Llama-3.1-70B": 70.554,
    "Llama-3.1-405B": 405.85,
    "Llama-3.2-3B": 3.213,
    "Mistral-7B-v0.3": 7.248,
    "Mistral-Small-24B": 23.57,
    "Mixtral-8x7B": 46.70,
    "Mixtral-8x22B": 140.62,
    "Qwen2.5-0.5B": 0.494,
    "Qwen2.5-7B": 7.616,
    "Qwen2.5-72B": 72.706,
    "Qwen3-4B": 4.022,
    "Qwen3-30B-A3B": 30.532,
    "Qwen3-235B-A22B": 235.09,
    "Gemma-2-9B": 9.242,
    "Phi-4": 14.66,
    "gpt-oss-20b": 20.91,
    "gpt-oss-120b": 116.83,
    "DeepSeek-V3": 671.03,
}


@pytest.mark.parametrize(("name", "billions"), PUBLISHED.items())
def test_shapes_give_the_published_totals(name: str, billions: float) -> None:
    model = find_model(name)
    assert model is not None
    assert model.shape is not None
    assert model.shape.parameters / 1e9 == pytest.approx(billions, rel=0.001)
