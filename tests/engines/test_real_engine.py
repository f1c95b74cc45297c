"""llama.cpp's own server on the CPU: found, known, read and named as on a GPU server."""

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.collectors.collector import Sources
from agent.collectors.engine import EngineCollector
from agent.host.hostfs import HostFs
from agent.host.owners import Owners
from agent.host.processes import parse_stat
from agent.identity import Identities
from tests.engines.test_collector import PROCESS, UUID, sample
from tests.require import need

PYTHON = Path(__file__).parents[2] / "build" / "llamacpp" / "bin" / "python"
REQUESTS, TOKENS = 3, 40


@contextmanager
def llama_server(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """A process whose command is llama-server's; its pid, its port, its model."""
    need(PYTHON.exists(), "llamacpp", "make verify-engine")
    program, model = folder / "llama-server", folder / "random-0.1m-f32.gguf"
    shutil.copy(Path(__file__).parent / "llamacpp_server.py", program)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command: list[str | Path] = [PYTHON, program, "-m", model, "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert str(port) in process.stdout.readline()
            yield process.pid, port, model
        finally:
            process.kill()


def complete(port: int) -> dict[str, Any]:
    body = json.dumps({"prompt": "hello there", "n_predict": TOKENS, "ignore_eos": True}).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/completion", body, 60) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


@pytest.mark.long
def test_the_page_of_a_real_server(tmp_path: Path) -> None:
    with llama_server(tmp_path) as (pid, port, model):
        hostfs = HostFs()
        identities = Identities(hostfs, Owners(hostfs))
        texts = identities.texts(pid, parse_stat(hostfs.bytes(f"/proc/{pid}/stat")), 0.0)
        assert (texts["workload"], texts["model"]) == ("llm_inference", model.name)
        assert identities.weights_bytes(pid) in (None, model.stat().st_size)  # if still mapped

        collector = EngineCollector(Sources())
        start = time.monotonic()
        collector.collect(start, sample(pid, **texts))
        collector.wait(20.0)
        answers = [complete(port) for _ in range(REQUESTS)]
        taken = sample(pid, **texts)
        collector.collect(start + collector.every, taken)
        collector.wait(20.0)
        collector.collect(start + collector.every + 1.0, taken)

        assert all(answer["tokens_predicted"] == TOKENS for answer in answers)
        row = taken.rows["engine", "other-0"]
        assert row["requests_running"] == row["requests_waiting"] == 0
        assert "kv_cache_usage_ratio" not in row
        reasons = collector.unavailable()
        assert "does not tell it" in reasons[f"engine {port} kv_cache_usage_ratio"]
        # What it made since the first look, by its own counter, in the time between both.
        assert row["generation_tokens_per_second"] > 0
        assert row["prompt_tokens_per_second"] > 0
        told = taken.texts["engine", "other-0"]
        assert (told["engine"], told["gpu_uuids"]) == ("llama.cpp", UUID)
        assert taken.texts[PROCESS]["model"] == model.name
