"""What the planner answers, and what it refuses."""

from __future__ import annotations

import pytest

from advisor.catalogue import Model, Shape, find_gpu, find_model
from advisor.planner import Plan, PlanError, Request, plan

GIB = 1 << 30


def model(name: str) -> Model:
    found = find_model(name)
    assert found is not None
    return found


THIRTEEN = model("Llama-2-13B")
EIGHT = model("Llama-3.1-8B")
SEVENTY = model("Llama-3.1-70B")


def verdicts(answer: Plan, claim: str) -> set[str]:
    return {item.verdict for item in answer.claims if item.id == claim}


def test_thirteen_billion_in_fp16_do_not_fit_24_gb() -> None:
    answer = plan(Request(THIRTEEN, quant="fp16", gpu=find_gpu("RTX 4090")))
    assert [fit.count for fit in answer.does_not_fit] == [1]
    assert set(answer.smaller_quants) == {"fp8", "int8", "awq", "q4_k_m"}
    assert verdicts(answer, "C5") == {"fails"}
    assert all(fit.count >= 2 for fit in answer.fits)


def test_it_is_said_what_holds_thirteen_billion() -> None:
    answer = plan(Request(THIRTEEN, quant="fp16"))
    single = [fit for fit in answer.fits if fit.count == 1]
    assert single
    assert min(fit.total_memory_bytes for fit in single) > 31 * 1e9
    assert verdicts(answer, "C5") == {"fails"}


@pytest.mark.parametrize(
    ("recipe", "verdict"), [("mixed", "fails"), ("pure-bf16", "holds"), ("adam8bit", "fails")]
)
def test_the_guides_training_factor_depends_on_the_recipe(recipe: str, verdict: str) -> None:
    """4 to 6 times is right of pure BF16 alone (8 B a parameter); mixed precision takes 9 times."""
    answer = plan(Request(EIGHT, task="full", recipe=recipe))
    assert verdicts(answer, "C2") == {verdict}


def test_full_fine_tuning_of_70b_is_more_than_the_guide_says() -> None:
    assert verdicts(plan(Request(SEVENTY, task="full")), "C3") == {"fails"}
    assert verdicts(plan(Request(SEVENTY, task="lora")), "C3") == set()


def test_four_bits_of_70b() -> None:
    answer = plan(Request(SEVENTY, quant="q4_k_m", engine="llamacpp", users=1, context=8192))
    told = " ".join(item.computed for item in answer.claims if item.id == "C6")
    assert "43.2 GB" in told
    documented = [fit for fit in answer.fits if fit.meets_documented_profile]
    assert {fit.gpu for fit in documented} >= {"L40S", "RTX PRO 6000 Blackwell Server Edition"}
    assert not any(fit.gpu.startswith("H100") for fit in documented)


def test_a_cache_is_small_or_not_by_its_sequences() -> None:
    assert verdicts(plan(Request(EIGHT, users=1, context=2048)), "C7") == {"holds"}
    assert verdicts(plan(Request(EIGHT, users=1, context=128_000)), "C7") == {"fails"}


def test_users_from_rate_and_latency() -> None:
    """Little's law: 4 requests a second that take 12.4 s are 50 at once, rounded up."""
    answer = plan(Request(EIGHT, rate_per_second=4.0, latency_seconds=12.4, context=1000))
    same = plan(Request(EIGHT, users=50, context=1000))
    assert answer.question.users == 50
    assert answer.total_bytes == same.total_bytes


def test_kv_heads_replicate_beyond_their_number() -> None:
    """Two KV heads over four GPUs: each is held twice, and so is the cache."""
    shape = Shape(32, 4096, 32, 2, 128, 32_000, 11_008)
    grouped = Model("grouped", shape.parameters, shape)
    two, four = (plan(Request(grouped, users=4, gpus=n)) for n in (2, 4))
    assert four.bytes_of("kv_cache_bytes") == 2 * (two.bytes_of("kv_cache_bytes") or 0)
    assert "held 2 times" in next(p.how for p in four.parts if p.name == "kv_cache_bytes")


def test_latent_attention_is_not_divided() -> None:
    one, eight = (plan(Request(model("DeepSeek-V3"), gpus=n)) for n in (1, 8))
    assert eight.bytes_of("kv_cache_bytes") == 8 * (one.bytes_of("kv_cache_bytes") or 0)


def test_a_model_cut_by_layers_needs_no_dividing_heads() -> None:
    answer = plan(Request(EIGHT, engine="hf", gpus=3))
    assert answer.per_gpu_bytes < answer.total_bytes / 2


def test_decode_is_bounded_by_bandwidth() -> None:
    """3.35 TB/s over 8.03 B parameters in BF16 less the embedding: about 220 tokens a second."""
    answer = plan(Request(EIGHT, gpu=find_gpu("H100 SXM"), gpus=1, context=16))
    ceiling = answer.fits[0].decode_tokens_per_second_ceiling
    assert ceiling == pytest.approx(3.35e12 / (2 * (8.03e9 - 0.525e9)), rel=0.01)


def test_a_mixture_reads_only_its_active_experts() -> None:
    card = find_gpu("H200")
    dense, mixture = (
        plan(Request(model(name), gpu=card, gpus=1, context=16)).fits[0]
        for name in ("Qwen3-32B", "Qwen3-30B-A3B")
    )
    assert (mixture.decode_tokens_per_second_ceiling or 0) > 8 * (
        dense.decode_tokens_per_second_ceiling or 0
    )


def test_a_model_without_a_shape_is_planned_for_what_is_known() -> None:
    answer = plan(Request(Model("unknown", 7_000_000_000)))
    assert answer.bytes_of("kv_cache_bytes") is None
    assert not answer.complete
    assert any("config.json" in note for note in answer.notes)


def test_what_a_prompt_takes_at_once_is_needed_of_the_card() -> None:
    answer = plan(Request(EIGHT, engine="hf", context=100_000, gpu=find_gpu("L40S"), gpus=1))
    fit = (*answer.fits, *answer.does_not_fit)[0]
    assert answer.transient_bytes > GIB
    assert fit.need_per_gpu_bytes == answer.per_gpu_bytes + answer.transient_bytes


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Request(EIGHT, users=-1), "--users -1"),
        (Request(EIGHT, users=0), "--users 0"),
        (Request(EIGHT, context=10**14), "--context"),
        (Request(EIGHT, quant="q9"), "--quant q9: not known"),
        (Request(EIGHT, kv_dtype="int3"), "--kv-dtype int3"),
        (Request(EIGHT, engine="ollama"), "--engine ollama"),
        (Request(EIGHT, recipe="fp64"), "--recipe fp64"),
        (Request(EIGHT, zero=4), "--zero 4"),
        (Request(EIGHT, gpus=3), "32 heads, 8 KV heads"),
        (Request(model("Qwen2.5-7B"), gpus=8), "give one of 1, 2, 4"),
        (Request(EIGHT, memory_utilization=1.5), "--memory-utilization 1.5"),
        (Request(EIGHT, rate_per_second=2.0), "--latency"),
        (Request(EIGHT, rate_per_second=2.0, latency_seconds=1.0, users=3), "give one"),
        (Request(EIGHT, rate_per_second=-2.0, latency_seconds=1.0), "above 0"),
        (Request(EIGHT, task="full", quant="awq"), "--task qlora"),
        (Request(EIGHT, task="qlora", quant="bf16"), "give nf4"),
        (Request(Model("unknown", 7_000_000_000), task="lora"), "config.json"),
    ],
)
def test_the_impossible_is_refused_in_one_line(asked: Request, said: str) -> None:
    with pytest.raises(PlanError) as error:
        plan(asked)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
