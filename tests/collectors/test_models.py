"""The model of a process from its files: weights that a real process holds, YAML that it names."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.host.hostfs import HostFs
from agent.host.model_config import CONFIG, ModelConfig, read_config
from agent.host.model_files import WEIGHTS, YAML, Weights, held_weights
from agent.host.owners import Owners
from agent.host.processes import parse_stat
from agent.identity import Identities
from telemetry.workload import Kind

HOLD = """
import mmap, sys
held = []
for path in sys.argv[2:]:
    file = open(path, "rb")
    if path.endswith(".safetensors"):
        held.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        file.close()
    else:
        held.append(file)
print("ready", flush=True)
sys.stdin.read()
"""


FACTORY = """model_name_or_path: NousResearch/Meta-Llama-3-8B
finetuning_type: lora
quantization_bit: 4
"""


@contextmanager
def running(program: Path, *arguments: str, cwd: Path | None = None) -> Iterator[int]:
    program.write_text(HOLD)
    command = [sys.executable, str(program), *arguments]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=cwd
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process.pid
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


def file(path: Path, size: int) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\0" * size)
    return str(path)


def texts(pid: int) -> tuple[dict[str, str], int | None]:
    hostfs = HostFs()
    identities = Identities(hostfs, Owners(hostfs))
    stat = parse_stat(hostfs.bytes(f"/proc/{pid}/stat"))
    return dict(identities.texts(pid, stat, 1.0)), identities.weights_bytes(pid)


CACHE = "hub/models--meta-llama--Llama-3.1-8B-Instruct/snapshots/0e9e39f249a16976918f6564b8830bc8"


@pytest.mark.parametrize(
    ("paths", "model"),
    [
        (
            (
                f"{CACHE}/model-00001-of-00002.safetensors",
                f"{CACHE}/model-00002-of-00002.safetensors",
            ),
            "meta-llama/Llama-3.1-8B-Instruct",
        ),
        (("models/Qwen2.5-7B-Instruct/model.safetensors",), "Qwen2.5-7B-Instruct"),
        (("gguf/Llama-3.2-3B-Instruct-Q4_K_M.gguf",), "Llama-3.2-3B-Instruct-Q4_K_M"),
        (("a/one.gguf", "b/two.gguf"), None),
    ],
)
def test_weights_that_are_open_or_mapped_name_the_model(
    tmp_path: Path, paths: tuple[str, ...], model: str | None
) -> None:
    files = [file(tmp_path / path, 5000 + i) for i, path in enumerate(paths)]
    with running(tmp_path / "server.py", "-", *files) as pid:
        size = sum(5000 + i for i in range(len(paths)))
        assert held_weights(HostFs(), pid) == Weights(size, model)
        found, weights = texts(pid)
        assert weights == size
        assert found.get("model") == model
        assert found.get("model_source") == (None if model is None else WEIGHTS)


def test_the_hubs_cache_names_its_blobs_by_links(tmp_path: Path) -> None:
    """A process shows the files behind the links: by their hash, without an ending."""
    cache = tmp_path / "models--Qwen--Qwen2.5-7B-Instruct-AWQ"
    blobs = [file(cache / "blobs" / (letter * 64), 3000) for letter in "abc"]
    snapshot = cache / "snapshots" / "b25037543e9394b818fdfca67ab2a00ecc7dd641"
    snapshot.mkdir(parents=True)
    for name, letter in (("model-1.safetensors", "a"), ("model-2.safetensors", "b")):
        (snapshot / name).symlink_to(f"../../blobs/{letter * 64}")
    (snapshot / "tokenizer.json").symlink_to(f"../../blobs/{'c' * 64}")
    (snapshot / "config.json").write_text(
        """{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584,
        "quantization_config": {"quant_method": "awq", "bits": 4}}"""
    )
    with running(tmp_path / "server.py", "-", *blobs) as pid:
        found, weights = texts(pid)
    assert weights == 6000
    assert (found["model"], found["model_source"]) == ("Qwen/Qwen2.5-7B-Instruct-AWQ", WEIGHTS)
    assert found["architecture"] == "Qwen2ForCausalLM"
    assert found["model_type"] == "qwen2"
    assert found["hidden_size"] == "3584"
    assert found["quantization"] == "awq 4 bits"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"_name_or_path": "mistralai/Mistral-7B-v0.1"}',
            ModelConfig("mistralai/Mistral-7B-v0.1"),
        ),
        ('{"text_config": {"hidden_size": 5120}}', ModelConfig(hidden_size=5120)),
        (
            '{"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true}}',
            ModelConfig(quantization="bitsandbytes 4 bits"),
        ),
        ('{"quantization_config": {"quant_method": "fp8"}}', ModelConfig(quantization="fp8")),
        ('{"architectures": [], "hidden_size": "4096", "model_type": 7}', None),
        ('{"architectures": ["\\u001b[2J\\u0007"], "hidden_size": true}', None),
        ('{"_name_or_path": "a b; rm -rf ~", "hidden_size": 1e99}', None),
        ('{"hidden_size": -1, "quantization_config": {"bits": 4}}', None),
        ("[" * 100_000, None),
        ('{"a":' * 20_000 + "1" + "}" * 20_000, None),
        ('{"hidden_size": ' + "9" * 100_000 + "}", None),
        ('{"model_type": "llama", "x": "' + "y" * (1 << 18) + '"}', None),
        ("", None),
    ],
)
def test_a_config_tells_plain_words_alone(
    tmp_path: Path, text: str, expected: ModelConfig | None
) -> None:
    (tmp_path / "config.json").write_text(text)
    assert read_config(HostFs(), str(tmp_path / "config.json")) == expected


@given(
    st.dictionaries(
        st.sampled_from(["architectures", "_name_or_path", "hidden_size", "quantization_config"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner) | st.dictionaries(st.sampled_from(["bits", "quant_method"]), inner)
            ),
        ),
    )
)
def test_no_config_breaks_the_reading(value: object) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as place:
        json.dump(value, place)
        place.flush()
        found = read_config(HostFs(), place.name)
    if found is not None:
        for told in (found.model, *found.texts().values()):
            assert told is None or (len(told) <= 128 and told.isprintable())


def test_a_config_names_a_model_whose_folder_does_not(tmp_path: Path) -> None:
    weights = file(tmp_path / ("f" * 40) / "model.safetensors", 100)
    (tmp_path / ("f" * 40) / "config.json").write_text('{"_name_or_path": "tiiuae/falcon-7b"}')
    with running(tmp_path / "server.py", "-", weights) as pid:
        found, _ = texts(pid)
    assert (found["model"], found["model_source"]) == ("tiiuae/falcon-7b", CONFIG)


def test_a_process_without_weights_has_none(tmp_path: Path) -> None:
    with running(tmp_path / "server.py", "-", file(tmp_path / "data.bin", 10)) as pid:
        assert held_weights(HostFs(), pid) is None
        assert "model" not in texts(pid)[0]


@pytest.mark.parametrize(
    ("yaml", "kind"),
    [
        ("base_model: NousResearch/Meta-Llama-3-8B\nadapter: qlora\n", Kind.QLORA_FINETUNING),
        (
            "base_model: 'NousResearch/Meta-Llama-3-8B' # ours\nadapter: lora\n",
            Kind.LORA_FINETUNING,
        ),
        (
            FACTORY,
            Kind.QLORA_FINETUNING,
        ),
        (
            "model_name_or_path: NousResearch/Meta-Llama-3-8B\nfinetuning_type: full\n",
            Kind.FULL_FINETUNING,
        ),
        ("base_model: NousResearch/Meta-Llama-3-8B\n", Kind.FINETUNING),
    ],
)
def test_yaml_that_the_command_names_tells_model_and_method(
    tmp_path: Path, yaml: str, kind: Kind
) -> None:
    (tmp_path / "lora.yml").write_text(yaml)
    program = tmp_path / "axolotl"
    with running(program, "train", "lora.yml", cwd=tmp_path) as pid:
        found, _ = texts(pid)
    assert found["model"] == "NousResearch/Meta-Llama-3-8B"
    assert found["model_source"] == YAML
    assert found["workload"] == kind.value


def test_the_command_comes_before_the_files(tmp_path: Path) -> None:
    weights = file(tmp_path / "other/model.safetensors", 100)
    program = tmp_path / "vllm"
    with running(program, "serve", weights, cwd=tmp_path) as pid:
        found, size = texts(pid)
    assert found["model_source"] == "command"
    assert size == 100


def test_a_process_of_another_user_is_absent_with_the_remedy(tmp_path: Path) -> None:
    class Refusing(HostFs):
        def names(self, path: str) -> list[str]:
            return [] if path.endswith("/fd") else super().names(path)

    pid = os.getpid()
    hostfs = Refusing()
    identities = Identities(hostfs, Owners(hostfs))
    identities.texts(pid, parse_stat(hostfs.bytes(f"/proc/{pid}/stat")), 1.0)
    assert identities.weights_bytes(pid) is None
    assert "CAP_SYS_PTRACE" in identities.reasons["gpu_process weights_bytes"]
