"""Command lines are other people's text: long, odd, misleading, and full of secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.modelname import parameters_of, precision_in, short_name
from telemetry.redaction import MAX_OUTPUT, redact
from telemetry.workload import Kind, Signatures

SIGNATURES = Signatures.load()

QUIET = [
    "",
    "python",
    "python -",
    "python3 -c 'from multiprocessing.spawn import spawn_main; spawn_main()'",
    "python3 -m ipykernel_launcher -f /run/user/1000/jupyter/kernel-1.json",
    "torchrun --nproc_per_node 8",
    "accelerate launch --config_file vllm.yaml --num_processes 8",
    "deepspeed --num_gpus 8",
    "mpirun -np 8 python",
    "bash -c",
    "vim pretrain_gpt.py",
    "tail -f /var/log/vllm/serve.log",
    "python notebook.py --note finetune.py",
    "python inference.py --load_in_4bit",
    "python main.py --max_lora_rank 64",
    "python train_and_serve.py",
    "python test_train.py",
    "vllm bench serve --model meta-llama/Llama-3.1-8B",
]


@pytest.mark.parametrize("line", QUIET)
def test_what_says_nothing_gets_no_kind(line: str) -> None:
    assert SIGNATURES.match(line) is None


TOLD = [
    # An argument's value is no program, and no tool.
    ("python finetune.py --model openai/whisper-large --output_dir /runs/vllm", Kind.FINETUNING),
    ("torchrun --nproc_per_node 8 train.py --eval_server vllm", Kind.TRAINING_OR_FINETUNING),
    # A switch that is off is off.
    ("trl sft --use_peft true --load_in_4bit false --model x", Kind.LORA_FINETUNING),
    ("trl sft --use_peft false --model x", Kind.FINETUNING),
    # Options that exclude each other tell nothing.
    ("llamafactory-cli train --finetuning_type full --quantization_bit 4", Kind.FINETUNING),
    # Wrappers and launchers are looked through, one in another.
    ("env A=1 nice -n 5 numactl -N 0 python3.11 -u -X dev pretrain_gpt.py", Kind.TRAINING),
    ("bash -c CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen2.5-7B", Kind.LLM_INFERENCE),
    ("srun --ntasks 8 torchrun --nnodes 2 -m axolotl.cli.train a.yml", Kind.FINETUNING),
    ("mpirun -np 8 --allow-run-as-root python pretrain_gpt.py", Kind.TRAINING),
    # The mode decides, not the tool.
    ("swift rlhf --rlhf_type dpo --model x", Kind.FINETUNING),
    ("tritonserver --model-repository /models/vllm_backend", Kind.LLM_INFERENCE),
    ("python -m vllm.entrypoints.openai.api_server\0--model\0x y", Kind.LLM_INFERENCE),
]


@pytest.mark.parametrize(("line", "kind"), TOLD)
def test_what_is_run_decides(line: str, kind: Kind) -> None:
    match = SIGNATURES.match(line)
    assert match is not None
    assert match.kind is kind


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("TheBloke/Llama-2-70B-AWQ", 70e9),
        ("Qwen/Qwen2.5-7B-Instruct-1M", 7e9),
        ("Qwen/Qwen3-30B-A3B", 30e9),
        ("qwen2.5:0.5b", 0.5e9),
        ("EleutherAI/pythia-160m", 160e6),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", None),
        ("meta-llama/Llama-4-Scout-17B-16E", None),
        ("Qwen1.5-MoE-A2.7B", None),
        ("google/gemma-3n-E4B-it", None),
        ("unsloth/llama-3-bnb-4bit", None),
        ("distilled-70B-to-8B", None),
        ("yolov8m.pt", None),
        ("gpt2", None),
    ],
)
def test_a_count_is_what_the_name_states_plainly(name: str, count: float | None) -> None:
    assert parameters_of(name) == count


@pytest.mark.parametrize(
    ("line", "model", "precision"),
    [
        ("vllm serve /models/Llama-2-70B-AWQ --dtype half", "Llama-2-70B-AWQ", "awq"),
        ("llama-server -m /m/Qwen2.5-7B.Q4_K_M.gguf", "Qwen2.5-7B.Q4_K_M.gguf", "q4_k_m"),
        (
            "vllm serve /hf/hub/models--Qwen--Qwen3-8B/snapshots/0123456789abcdef0123",
            "Qwen/Qwen3-8B",
            None,
        ),
        ("ollama runner --model /x/blobs/sha256-" + "6a" * 32, None, None),
        ("trl sft --model_name_or_path a/b-8B --use_peft --load_in_4bit --bf16", "a/b-8B", "nf4"),
        ("vllm serve a/b --quantization fp8 --dtype bfloat16", "a/b", "fp8"),
    ],
)
def test_model_and_precision(line: str, model: str | None, precision: str | None) -> None:
    match = SIGNATURES.match(line)
    assert match is not None
    assert (match.model, match.precision) == (model, precision)


SECRET = "Zz9secretZz9"


@pytest.mark.parametrize(
    "line",
    [
        f"x --api-key {SECRET}",
        f"x --hf_token={SECRET}",
        f"x --apiKey {SECRET} --port 1",
        f"HF_TOKEN={SECRET} python a.py",
        f"x --password -{SECRET}",
        f"x\0--password\0two words {SECRET}\0--tokenizer\0t",
        f"curl -H Authorization: Bearer {SECRET}",
        f"x --header Authorization:Bearer {SECRET}",
        f'x --config {{"api_key":"{SECRET}","a":1}}',
        f"x https://user:{SECRET}@host/path",
        f"x https://host/?token={SECRET}&a=1",
        f"x --wandb-key {SECRET}",
        f"x --model hf_{SECRET}",
    ],
)
def test_secrets_do_not_come_through(line: str) -> None:
    assert SECRET not in redact(line)


def test_what_is_no_secret_stays() -> None:
    line = "vllm serve a/b --max-model-len 4096 --max_tokens 16 --tokenizer a/b --port 8000"
    assert redact(line) == line


HOSTILE = [
    "a" * 10**6,
    "a_" * 50_000 + ".py",
    "python " * 20_000,
    "env " * 20_000,
    "torchrun " * 20_000,
    "tune run " + "lora_" * 20_000,
    "swift rlhf " + "--rlhf_typ " * 20_000,
    "--" * 50_000,
    "token=" * 20_000,
    "https://" * 20_000,
    "\0" * 100_000,
    "vllm serve " + "\udcff" * 10_000,
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_answered_in_bounded_time(line: str) -> None:
    SIGNATURES.match(line)
    assert len(redact(line)) <= MAX_OUTPUT


@given(st.text(max_size=300))
def test_any_text_is_answered(line: str) -> None:
    SIGNATURES.match(line)
    redact(line)
    parameters_of(line)
    precision_in(line)
    short_name(line)


@given(
    st.lists(
        st.sampled_from(
            [
                "python",
                "-m",
                "torchrun",
                "vllm",
                "serve",
                "train.py",
                "--lora_r",
                "8",
                "env",
                "A=1",
                "bash",
                "-c",
                "--model",
                "a/b-7B",
                "-",
                "run",
            ]
        ),
        max_size=8,
    )
)
def test_any_order_of_words_is_answered(words: list[str]) -> None:
    match = SIGNATURES.match(" ".join(words))
    assert match is None or match.kind in Kind
