"""What llama.cpp and Ollama needed, by their own answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.demand import JobDemand, job_demands
from advisor.phase import Phase
from telemetry.window import Key, Row
from tests.phases.recorded import HOUR, Recorder, Values, work

LLAMA = "/usr/local/bin/llama-server -m /models/llama-3.1-8b-instruct-q4_k_m.gguf -c 65536"
OLLAMA = (
    "/usr/local/bin/ollama runner --model /root/.ollama/models/blobs/sha256-667b0c1932bc --port 1"
)
TOKEN = 131_072
"""Bytes of a token of Llama 3.1 8B: 2 x 32 layers x 8 heads x 128 x 2 bytes."""


def demand_of(folder: Path, command: str, engine: str, model: str, told: Values) -> JobDemand:
    row: dict[Key, Row] = {
        ("engine", "8080"): Row(told, {"engine": engine, "model": model, "gpu_uuids": "GPU-0"})
    }
    recorder = Recorder(1).add(HOUR, [work(0.5, 300, 40)], [[command]], more=row)
    (demand,) = job_demands(recorder.observe(folder))
    assert demand.phase is Phase.LLM_INFERENCE
    return demand


def test_llama_cpp_needs_its_own_weights_and_its_longest_sequences(tmp_path: Path) -> None:
    told = {
        "weights_bytes": 4912898304.0,
        "longest_sequence_tokens": 6000.0,
        "requests_running": 1.2,
        "requests_running_max": 3.0,
    }
    name = "meta-llama/Llama-3.1-8B-Instruct"
    demand = demand_of(tmp_path, LLAMA, "llama.cpp", name, told)
    assert demand.weights_bytes == pytest.approx(4912898304)
    assert demand.peak_kv_bytes == pytest.approx(3 * 6000 * TOKEN)
    assert demand.vram_bytes == pytest.approx(4912898304.0 + 3 * 6000 * TOKEN)
    assert not demand.upper_bound
    assert "as the engine tells them" in demand.source


def test_llama_cpp_with_a_model_that_nobody_knows_is_unknown(tmp_path: Path) -> None:
    command = "/usr/local/bin/llama-server -m /models/ours.gguf"
    told = {"weights_bytes": 5e9, "longest_sequence_tokens": 6000.0, "requests_running": 1.0}
    demand = demand_of(tmp_path, command, "llama.cpp", "/models/ours.gguf", told)
    assert demand.vram_bytes is None
    assert demand.reason is not None


def test_ollama_tells_what_its_models_take_at_most(tmp_path: Path) -> None:
    told = {"models_bytes": 47e9, "host_offload_ratio": 0.5}
    demand = demand_of(tmp_path, OLLAMA, "ollama", "llama3.1:70b", told)
    assert demand.vram_bytes == pytest.approx(47e9)  # what is in host memory too
    assert demand.upper_bound
    assert "engine" in demand.source
