"""`talla-advisor plan`, `gpus` and `models` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from advisor.cli import main
from tests.planner.test_config_json import LLAMA

Capture = pytest.CaptureFixture[str]

PARTS = (
    "weights_bytes",
    "kv_cache_bytes",
    "activation_bytes",
    "optimizer_bytes",
    "gradient_bytes",
    "adapter_bytes",
    "overhead_bytes",
)


def planned(capsys: Capture, *words: str) -> dict[str, Any]:
    assert main(["plan", "--json", *words]) == 0
    out = capsys.readouterr()
    assert out.err == ""
    document: dict[str, Any] = json.loads(out.out)
    return document


def refused(capsys: Capture, *words: str) -> tuple[int, str]:
    code = main(["plan", *words])
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.count("\n") == 1
    return code, out.err


def test_json_has_the_shape_that_other_tools_read(capsys: Capture) -> None:
    found = planned(
        capsys, "--model", "meta-llama/Llama-3.1-8B-Instruct", "--task", "inference", "--users", "4"
    )
    assert found["total_bytes"] == sum(found[part] for part in PARTS)
    fit = found["fits"][0]
    for key in (
        "gpu",
        "count",
        "total_memory_bytes",
        "headroom_ratio",
        "kv_cache_available_bytes",
        "kv_cache_tokens",
        "meets_documented_profile",
        "notes",
    ):
        assert key in fit
    assert all(name in found["explanation"] for name in ("weights_bytes", "kv_cache_bytes"))


def test_a_config_json_by_path(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    by_file = planned(capsys, "--model", str(tmp_path / "config.json"), "--context", "16000")
    by_name = planned(capsys, "--model", "Llama-3.1-8B", "--context", "16000")
    assert [by_file[part] for part in PARTS] == [by_name[part] for part in PARTS]


def test_parameters_with_a_shape(capsys: Capture) -> None:
    found = planned(
        capsys,
        *("--params", "7B", "--layers", "32", "--hidden-size", "4096", "--heads", "32"),
        *("--vocab", "32000", "--context", "2048"),
    )
    assert found["weights_bytes"] == pytest.approx(14e9, rel=0.01)
    assert found["kv_cache_bytes"] == 2 * 32 * 4096 * 2 * 2048


def test_an_architecture_that_is_not_known_asks_for_the_shape(
    capsys: Capture, tmp_path: Path
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**LLAMA, "model_type": "rwkv7"}), encoding="utf-8")
    code, said = refused(capsys, "--model", str(file))
    assert code == 1
    assert "rwkv7" in said
    assert "--layers" in said


def test_compare(capsys: Capture) -> None:
    found = planned(capsys, "--model", "Qwen3-8B", "--compare", "q4_k_m,fp8,bf16")
    sizes = [item["weights_bytes"] for item in found["compare"]]
    assert [item["quant"] for item in found["compare"]] == ["q4_k_m", "fp8", "bf16"]
    assert sizes == sorted(sizes)


def test_the_quantisation_in_a_name_counts(capsys: Capture) -> None:
    assert planned(capsys, "--model", "TheBloke/Llama-2-70B-AWQ")["quant"] == "awq"
    assert planned(capsys, "--model", "openai/gpt-oss-20b")["quant"] == "mxfp4"


def test_people_get_a_table(capsys: Capture) -> None:
    assert main(["plan", "--model", "Llama-2-13B", "--gpu", "RTX 4090", "--explain"]) == 0
    said = capsys.readouterr().out
    for expected in ("does not fit", "KV cache", "never a forecast", "C5 fails here"):
        assert expected in said


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--model", "Qwen3-8B", "--users", "-3"], 2, "--users -3"),
        (["--model", "Qwen3-8B", "--users", "abc"], 2, "--users abc"),
        (["--model", "Qwen3-8B", "--gpus", "3"], 2, "cannot be cut over 3 GPUs"),
        (["--model", "Qwen3-8B", "--gpu", "H100"], 2, "H100 80GB HBM3"),
        (["--model", "Qwen3-9B"], 2, "Qwen3-8B"),
        (["--model", "Qwen3-8B", "--gpu", "NVIDIA A30 MIG 1g.6gb"], 2, "--gpu-memory-bytes"),
        (["--model", "missing/config.json"], 1, "no such file"),
        (["--params", "nan"], 2, "7B"),
        (["--params=-7B"], 2, "7B"),
        (["--params", "7B", "--layers", "32"], 2, "--hidden-size, --heads, --vocab"),
        (["--model", "Llama-3.1-8B", "--params", "70B"], 1, "do not go with this shape"),
        ([], 2, "--model"),
        (["--model", "Llama-3.1-8B", "--rate", "1"], 2, "--latency"),
        (["--model", "bert-base-cased", "--context", "max"], 2, "--context max"),
    ],
)
def test_one_line_says_what_to_give(
    capsys: Capture, words: list[str], code: int, said: str
) -> None:
    got, line = refused(capsys, *words)
    assert (got, said in line) == (code, True), line


def test_the_catalogues_are_told(capsys: Capture) -> None:
    for command, least in (("gpus", 50), ("models", 45)):
        assert main([command, "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)) >= least
        assert main([command]) == 0
        assert capsys.readouterr().out
