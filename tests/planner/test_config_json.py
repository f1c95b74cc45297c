"""config.json files as model hubs publish them, by the keys that they really hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.catalogue import ConfigError, Model, find_model, load_config, model_from_config
from advisor.planner import Request, kv_bytes_per_token, plan

Config = dict[str, object]

LLAMA: Config = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
MIXTRAL: Config = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "sliding_window": None,
    "vocab_size": 32000,
}
QWEN1: Config = {
    "model_type": "qwen",
    "hidden_size": 4096,
    "intermediate_size": 22016,
    "kv_channels": 128,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "vocab_size": 151936,
    "no_bias": True,
}
QWEN2_MOE: Config = {
    "model_type": "qwen2_moe",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632,
    "num_experts": 60,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "decoder_sparse_step": 1,
    "sliding_window": 32768,
    "use_sliding_window": False,
    "max_window_layers": 21,
    "tie_word_embeddings": False,
    "vocab_size": 151936,
}
# google/gemma-3-27b-it leaves vocabulary out of its text_config.
GEMMA3: Config = {
    "model_type": "gemma3",
    "architectures": ["Gemma3ForConditionalGeneration"],
    "text_config": {
        "head_dim": 128,
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "model_type": "gemma3_text",
        "num_attention_heads": 32,
        "num_hidden_layers": 62,
        "num_key_value_heads": 16,
        "sliding_window": 1024,
    },
    "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"},
}
PHI2: Config = {
    "model_type": "phi",
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 51200,
    "tie_word_embeddings": False,
}
GPT_OSS: Config = {
    "model_type": "gpt_oss",
    "attention_bias": True,
    "head_dim": 64,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "num_attention_heads": 64,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 24,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "quantization_config": {"quant_method": "mxfp4"},
    "sliding_window": 128,
    "tie_word_embeddings": False,
    "vocab_size": 201088,
}
DEEPSEEK_V2_LITE: Config = {
    "model_type": "deepseek_v2",
    "first_k_dense_replace": 1,
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "kv_lora_rank": 512,
    "moe_intermediate_size": 1408,
    "moe_layer_freq": 1,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_attention_heads": 16,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 27,
    "num_key_value_heads": 16,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 102400,
}


def read(config: Config, parameters: int | None = None) -> Model:
    return model_from_config(config, name="read", parameters=parameters)


@pytest.mark.parametrize(
    ("config", "published_billions"),
    [
        pytest.param(LLAMA, 8.03, id="llama-3.1-8b"),
        pytest.param(MIXTRAL, 46.7, id="mixtral-8x7b"),
        pytest.param(QWEN1, 7.72, id="qwen-7b"),
        pytest.param(QWEN2_MOE, 14.3, id="qwen1.5-moe-a2.7b, with shared experts"),
        pytest.param(GEMMA3, 27.0, id="gemma-3-27b, text"),
        pytest.param(PHI2, 2.78, id="phi-2"),
        pytest.param(GPT_OSS, 20.9, id="gpt-oss-20b"),
        pytest.param(DEEPSEEK_V2_LITE, 15.7, id="deepseek-v2-lite"),
    ],
)
def test_the_shape_gives_the_published_parameters(
    config: Config, published_billions: float
) -> None:
    assert read(config).parameters / 1e9 == pytest.approx(published_billions, rel=0.005)


def test_active_parameters_of_mixtures_are_the_published_ones() -> None:
    """gpt-oss-20b counts its output layer (3.6 B), Qwen1.5-MoE-A2.7B its embedding too."""
    for config, embedding, billions in ((GPT_OSS, 0, 3.6), (QWEN2_MOE, 1, 2.7)):
        shape = read(config).shape
        assert shape is not None
        active = shape.active_linear_parameters + shape.head_parameters
        active += embedding * shape.embedding_parameters
        assert active / 1e9 == pytest.approx(billions, rel=0.01)


def test_caches_of_each_kind_of_attention() -> None:
    kib = {
        "grouped": (LLAMA, 128),
        "all heads": (QWEN1, 512),
        "latent": (DEEPSEEK_V2_LITE, 27 * 576 * 2 / 1024),
        "sliding": (GPT_OSS, 48),
        "interleaved": (GEMMA3, 496),
    }
    for name, (config, expected) in kib.items():
        assert kv_bytes_per_token(read(config)) == expected * 1024, name


def test_a_window_caps_the_cache() -> None:
    """Gemma-3-27B: 10 of 62 layers keep everything, 52 the last 1024 tokens."""
    answer = plan(Request(read(GEMMA3), engine="hf", context=100_000))
    token = 2 * 16 * 128 * 2
    assert answer.bytes_of("kv_cache_bytes") == token * (10 * 100_000 + 52 * 1024)


def test_layer_types_of_the_file_decide() -> None:
    listed = {**GPT_OSS, "layer_types": ["full_attention"] * 24}
    shape = read(listed).shape
    assert shape is not None
    assert shape.sliding_layers == 0


def test_a_window_that_is_switched_off_is_none() -> None:
    shape = read(QWEN2_MOE).shape
    assert shape is not None
    assert (shape.window, shape.sliding_layers) == (None, 0)


@pytest.mark.parametrize(
    ("section", "name"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq"),
        ({"quant_method": "gptq", "bits": 4}, "gptq"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
        ({"quant_method": "bitsandbytes", "bnb_4bit_use_double_quant": True}, "nf4-dq"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}},
            },
            "fp8",
        ),
    ],
)
def test_how_the_weights_are_stored_is_read(section: Config, name: str) -> None:
    assert read({**LLAMA, "quantization_config": section}).quant == name


def test_a_file_and_the_catalogue_give_the_same(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA), encoding="utf-8")
    known = find_model("Llama-3.1-8B")
    assert known is not None
    assert load_config(file).shape == load_config(tmp_path).shape == known.shape


def test_published_parameters_count_a_vision_tower() -> None:
    model = read(GEMMA3, 27_430_000_000)
    assert model.parameters == 27_430_000_000
    assert 0.3e9 < model.extra_parameters < 0.6e9
    assert any("vision" in note for note in read(GEMMA3).notes)


def without(key: str) -> Config:
    return {name: value for name, value in LLAMA.items() if name != key}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (without("num_hidden_layers"), "num_hidden_layers is missing"),
        (without("vocab_size"), "vocab_size is missing"),
        (without("hidden_size"), "hidden_size is missing"),
        (without("intermediate_size"), "intermediate_size is missing"),
        (without("model_type"), "model_type is missing"),
        ({**LLAMA, "model_type": "mamba2"}, "'mamba2' is not known"),
        ({**LLAMA, "num_attention_heads": 30}, "no multiple of num_key_value_heads"),
        ({**LLAMA, "num_attention_heads": 24, "hidden_size": 4100}, "give head_dim"),
        ({**LLAMA, "num_hidden_layers": "32"}, "a whole number is expected"),
        ({**LLAMA, "num_hidden_layers": -1}, "a whole number is expected"),
        ({**LLAMA, "num_hidden_layers": True}, "a whole number is expected"),
        ({**MIXTRAL, "num_experts_per_tok": 9}, "more than the 8 experts"),
        ({**LLAMA, "quantization_config": {"quant_method": "aqlm"}}, "--quant"),
        ({**LLAMA, "quantization_config": "fp8"}, "quantization_config is no object"),
        ({**LLAMA, "tie_word_embeddings": "false"}, "true or false is expected"),
        ({**LLAMA, "num_hidden_layers": 10**8}, "that is no model"),
        ({**LLAMA, "vocab_size": 10**30}, "a whole number is expected"),
        ({**GPT_OSS, "layer_types": ["full_attention"]}, "does not list the 24 layers"),
    ],
)
def test_what_is_missing_is_named(config: Config, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        read(config)
    assert "\n" not in str(error.value)


def test_a_count_of_another_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="do not go with this shape"):
        read(LLAMA, 70_000_000_000)


@pytest.mark.parametrize("content", ["", "[]", "{", "null", "\x00"])
def test_a_file_that_is_no_config_is_said_so(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"JSON|object"):
        load_config(file)
