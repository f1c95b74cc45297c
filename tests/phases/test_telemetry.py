"""Telemetry alone: the broad phases, and only where they are clear."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.demand import job_demands
from advisor.history import LocalHistory
from advisor.importers.run import Request, import_logs
from advisor.observe import observe
from advisor.period import period
from advisor.phase import Phase
from telemetry.states import State
from telemetry.window import Key, Row
from tests.phases.recorded import HOUR, VLLM, Recorder, Values, rest, told, work
from tests.traces import traces as traces

TRAINS = {
    "training_or_finetuning",
    "training",
    "finetuning",
    "full_finetuning",
    "lora_finetuning",
    "qlora_finetuning",
}
SERVES = {"inference", "llm_inference", "light_inference"}


def phases(recorder: Recorder, folder: Path) -> set[str]:
    return {phase for _, _, phase in told(recorder.observe(folder), "GPU-0")}


def test_cards_near_their_limit_that_do_the_same_train(tmp_path: Path) -> None:
    assert phases(Recorder(4).add(HOUR, [work()] * 4), tmp_path) == {"training_or_finetuning"}


UNCLEAR: dict[str, list[Values]] = {
    "a saturated server draws 70 % of its limit": [work(0.95, 500, 72)] * 2,
    "a saturated server, hotter, with its memory reserved": [work(0.95, 560, 72)] * 2,
    "one card at 80 %": [work(0.95, 560, 40), rest()],
    "a small job": [work(0.3, 200, 10)] * 2,
    "tensor and pipeline parallel, or a server: 60 % of the limit": [work(0.99, 425, 31)] * 2,
    "bound by memory": [{**work(), "dram_active_ratio": 0.6, "sm_active_ratio": 0.7}] * 2,
}


@pytest.mark.parametrize("case", UNCLEAR)
def test_what_is_not_clear_is_unknown(case: str, tmp_path: Path) -> None:
    assert phases(Recorder(2).add(HOUR, UNCLEAR[case]), tmp_path) == {"unknown"}


def test_video_decoded_beside_kernels_is_light_inference(tmp_path: Path) -> None:
    video = {**work(0.4, 250, 8), "decoder_ratio": 0.5, "encoder_ratio": 0.0}
    (tmp_path / "a").mkdir()
    assert phases(Recorder(1).add(HOUR, [video]), tmp_path / "a") == {"light_inference"}
    transcoding = {**video, "encoder_ratio": 0.4}
    (tmp_path / "b").mkdir()
    assert phases(Recorder(1).add(HOUR, [transcoding]), tmp_path / "b") == {"unknown"}


def test_decode_is_inference(tmp_path: Path) -> None:
    decode = {
        **work(0.9, 350, 60),
        "dram_active_ratio": 0.6,
        "sm_active_ratio": 0.4,
        "tensor_active_ratio": 0.08,
    }
    assert phases(Recorder(1).add(HOUR, [decode]), tmp_path) == {"inference"}


def test_requests_that_come_and_go_on_reserved_memory_are_inference(tmp_path: Path) -> None:
    recorder = Recorder(1)
    for _ in range(5):
        recorder.add(HOUR, [work(0.5, 350, 72)]).add(HOUR, [rest(72)])
    recorder.add(HOUR, [work(0.5, 350, 72)])
    assert phases(recorder, tmp_path) == {"inference"}


def test_a_notebook_that_comes_and_goes_is_not(tmp_path: Path) -> None:
    recorder = Recorder(1)
    for i in range(6):
        recorder.add(HOUR, [work(0.5, 350, 10 + 3 * i)]).add(HOUR, [rest(10 + 3 * i)])
    assert not phases(recorder, tmp_path) & SERVES


EXPECTED = {
    "train_h100x8_ddp_small": TRAINS,
    "train_h100x8_grad_accum_3b": TRAINS,
    "train_h100x8_tp8_pp2_node0": TRAINS,
    "train_a100x8_ddp": TRAINS,
    "infer_a100x8_hf_generate": SERVES,
    "infer_a100_llama2_7b_hf": SERVES,
    "train_h100x8_checkpoint_every_1000": TRAINS,
}


def observed(file: Path, folder: Path) -> tuple[set[str], list[State]]:
    """Phases and states of a recording, of all its GPUs."""
    store = folder / f"{file.stem}.db"
    model = "NVIDIA H100 80GB HBM3" if "h100" in file.name else "NVIDIA A100-SXM4-80GB"
    import_logs(Request((file,), store, gpu_model=model))
    with LocalHistory([store]) as history:
        (host,) = history.hosts()
        whole = period(history, host, 1e9)
        assert whole is not None
        seen = observe(history, host, whole)
    timelines = seen.gpus.values()
    return (
        {s.phase.value for t in timelines for s in t.segments},
        [s.state for t in timelines for s in t.states],
    )


def narrowed(file: Path, folder: Path) -> Path:
    """A copy with utilisation and power alone."""
    lines = [line.split(",") for line in file.read_text().splitlines()]
    keep = [
        i
        for i, name in enumerate(lines[0])
        if name in {"timestamp", "gpu", "power_w", "gpu_util_pct", "sm_util_pct"}
    ]
    copy = folder / file.name
    copy.write_text("\n".join(",".join(line[i] for i in keep) for line in lines) + "\n")
    return copy


@pytest.mark.parametrize("poor", [False, True], ids=["all columns", "utilisation and power"])
def test_real_recordings_are_never_told_wrong(poor: bool, traces: Path, tmp_path: Path) -> None:
    named = 0
    (tmp_path / "copy").mkdir()
    for name, right in EXPECTED.items():
        file = traces / f"{name}.csv"
        if poor:
            file = narrowed(file, tmp_path / "copy")
        found, states = observed(file, tmp_path)
        assert not found & ((TRAINS | SERVES) - right), name
        named += bool(found & right)
        assert not {State.STARVED, State.STUCK} & set(states), name
        if right is TRAINS:
            assert states.count(State.BUSY) >= 0.9 * len(states), name
    assert named >= 4


def test_reserved_is_not_needed(tmp_path: Path) -> None:
    # 90 % of the card reserved, 3 % of the cache in use: the weights and 3 %.
    engine: dict[Key, Row] = {
        ("engine", "8000"): Row(
            {
                "kv_cache_usage_ratio": 0.01,
                "kv_cache_usage_ratio_max": 0.03,
                "kv_cache_bytes": 50e9,
            },
            {"engine": "vllm", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu_uuids": "GPU-0"},
        )
    }
    recorder = Recorder(1).add(HOUR, [work(0.5, 300, 72)], [[VLLM]], more=engine)
    (tmp_path / "with").mkdir()
    (demand,) = job_demands(recorder.observe(tmp_path / "with"))
    assert demand.phase is Phase.LLM_INFERENCE
    assert demand.peak_kv_bytes == pytest.approx(1.5e9)
    assert demand.vram_bytes == pytest.approx(2 * 8.03e9 + 1.5e9, rel=0.01)
    assert not demand.upper_bound
    (tmp_path / "without").mkdir()
    silent = Recorder(1).add(HOUR, [work(0.5, 300, 72)], [[VLLM]])
    (demand,) = job_demands(silent.observe(tmp_path / "without"))
    assert demand.vram_bytes is None
    assert "metrics" in str(demand.reason)


def test_a_cache_that_is_told_in_tokens_has_the_bytes_of_its_model(tmp_path: Path) -> None:
    # Llama 3.1 8B keeps 2 x 32 layers x 8 heads x 128 x 2 bytes a token: 131,072.
    engine: dict[Key, Row] = {
        ("engine", "8000"): Row(
            {"kv_cache_usage_ratio": 0.01, "kv_cache_usage_ratio_max": 0.1, "kv_cache_tokens": 4e5},
            {"engine": "vllm", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu_uuids": "GPU-0"},
        )
    }
    recorder = Recorder(1).add(HOUR, [work(0.5, 300, 72)], [[VLLM]], more=engine)
    (demand,) = job_demands(recorder.observe(tmp_path))
    assert demand.peak_kv_bytes == pytest.approx(0.1 * 4e5 * 131_072)


def test_a_training_runs_memory_is_an_upper_bound(tmp_path: Path) -> None:
    recorder = Recorder(2).add(HOUR, [work(gib=30), work(gib=20)], [["python pretrain.py"]] * 2)
    (demand,) = job_demands(recorder.observe(tmp_path))
    assert demand.upper_bound
    assert demand.vram_bytes == pytest.approx(50 * 2.0**30)
