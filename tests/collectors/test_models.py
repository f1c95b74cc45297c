"""The model of a process from its files: weights that a real process holds, YAML that it names."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.host.hostfs import HostFs
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
