"""Phases from pins, processes and engines, in that order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.phase import Phase
from telemetry.inventory import GpuInfo, Inventory, Workload
from telemetry.window import Key, Row
from tests.phases.recorded import HOUR, PRETRAIN, SFT, VLLM, Recorder, rest, told, work


def test_training_on_four_gpus_and_inference_on_four(tmp_path: Path) -> None:
    gpus = [work()] * 4 + [work(0.5, 300, 72)] * 4
    observed = Recorder(8).add(HOUR, gpus, [[PRETRAIN]] * 4 + [[VLLM]] * 4).observe(tmp_path)
    assert told(observed, "GPU-0") == [(0, HOUR, "training")]
    assert told(observed, "GPU-7") == [(0, HOUR, "llm_inference")]
    training = observed.gpus["GPU-0"].segments[0]
    assert training.gpus == ("GPU-0", "GPU-1", "GPU-2", "GPU-3")
    serving = observed.gpus["GPU-4"].segments[0]
    assert serving.model == "meta-llama/Llama-3.1-8B-Instruct"
    assert serving.parameters == pytest.approx(8.03e9, rel=0.01)  # the published count


def test_serving_by_day_and_fine_tuning_by_night(tmp_path: Path) -> None:
    recorder = Recorder(1)
    for _ in range(2):
        recorder.add(4 * HOUR, [work(0.4, 300, 72)], [[VLLM]])
        recorder.add(6 * HOUR, [rest(72)], [[VLLM]])  # nobody asks; the server stands by
        recorder.add(8 * HOUR, [work()], [[SFT]])
    observed = recorder.observe(tmp_path)
    h = HOUR
    assert told(observed, "GPU-0") == [
        (0, 10 * h, "llm_inference"),
        (10 * h, 18 * h, "qlora_finetuning"),
        (18 * h, 28 * h, "llm_inference"),
        (28 * h, 36 * h, "qlora_finetuning"),
    ]


def test_short_pauses_are_bridged_and_long_ones_are_idle(tmp_path: Path) -> None:
    recorder = Recorder(1).add(HOUR, [work()], [[PRETRAIN]])
    recorder.add(2, [rest(60)], [[PRETRAIN]]).add(HOUR, [work()], [[PRETRAIN]])
    recorder.add(5 * HOUR, [rest()]).add(HOUR, [work()], [[PRETRAIN]])
    h = HOUR
    assert told(recorder.observe(tmp_path), "GPU-0") == [
        (0, 2 * h + 2, "training"),
        (2 * h + 2, 7 * h + 2, "idle"),
        (7 * h + 2, 8 * h + 2, "training"),
    ]


def test_a_hole_in_the_recording_is_no_part_of_a_segment(tmp_path: Path) -> None:
    recorder = Recorder(1).add(HOUR, [work()], [[PRETRAIN]]).gap(HOUR)
    observed = recorder.add(HOUR, [work()], [[PRETRAIN]]).observe(tmp_path)
    assert told(observed, "GPU-0") == [
        (0, HOUR, "training"),
        (2 * HOUR, 3 * HOUR, "training"),
    ]


def test_a_colocated_pair_is_told_as_two(tmp_path: Path) -> None:
    recorder = Recorder(1).add(HOUR, [work()], [[VLLM]]).add(HOUR, [work()], [[VLLM, SFT]])
    assert told(recorder.observe(tmp_path), "GPU-0") == [
        (0, 2 * HOUR, "llm_inference"),
        (HOUR, 2 * HOUR, "qlora_finetuning"),
    ]


def test_reinforcement_learning_is_told_as_mixed(tmp_path: Path) -> None:
    command = "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B"
    (segment,) = (
        Recorder(1).add(HOUR, [work()], [[command]]).observe(tmp_path).gpus["GPU-0"].segments
    )
    assert segment.phase is Phase.TRAINING_OR_FINETUNING
    assert any("mixed" in line for line in segment.evidence)
    assert segment.confidence <= 0.5


def test_an_engines_metrics_speak_where_its_process_is_not_known(tmp_path: Path) -> None:
    engine: dict[Key, Row] = {
        ("engine", "8000"): Row(
            {"kv_cache_usage_ratio": 0.1},
            {"engine": "vllm", "model": "Qwen/Qwen2.5-7B-Instruct", "gpu_uuids": "GPU-0,GPU-1"},
        )
    }
    observed = Recorder(3).add(HOUR, [work(0.5, 300, 72)] * 3, more=engine).observe(tmp_path)
    segment = observed.gpus["GPU-1"].segments[0]
    assert (segment.phase, segment.model) == (Phase.LLM_INFERENCE, "Qwen/Qwen2.5-7B-Instruct")
    assert segment.gpus == ("GPU-0", "GPU-1")
    assert told(observed, "GPU-2") == [(0, HOUR, "unknown")]


def pinned(*phases: str, workloads: tuple[Workload, ...] = ()) -> Inventory:
    gpus = tuple(GpuInfo(f"GPU-{i}", i, "NVIDIA H100 80GB HBM3") for i in range(2))
    return Inventory("host", gpus=gpus, pinned_phases=phases, workloads=workloads)


def test_what_a_person_pinned_goes_before_the_process(tmp_path: Path) -> None:
    recorder = Recorder(2, pinned("full_finetuning"))
    observed = recorder.add(HOUR, [work()] * 2, [["python train.py"]] * 2).observe(tmp_path)
    segment = observed.gpus["GPU-0"].segments[0]
    assert (segment.phase, segment.confidence) == (Phase.FULL_FINETUNING, 1.0)
    assert "pinned" in segment.evidence[0]


def test_a_workload_pins_its_own_gpus_and_model(tmp_path: Path) -> None:
    workload = Workload("lora_finetuning", "ours", 13e9, "bf16", gpus=(1,))
    recorder = Recorder(2, pinned(workloads=(workload,)))
    observed = recorder.add(HOUR, [work(), work()], [["python a.py"]] * 2).observe(tmp_path)
    segment = observed.gpus["GPU-1"].segments[0]
    assert (segment.phase, segment.model, segment.parameters) == (
        Phase.LORA_FINETUNING,
        "ours",
        13e9,
    )
    assert observed.gpus["GPU-0"].segments[0].phase is not Phase.LORA_FINETUNING


def test_a_pin_does_not_make_an_idle_card_work(tmp_path: Path) -> None:
    observed = Recorder(2, pinned("training")).add(HOUR, [rest(), work()]).observe(tmp_path)
    assert told(observed, "GPU-0") == [(0, HOUR, "idle")]
    assert told(observed, "GPU-1") == [(0, HOUR, "training")]


def test_several_declared_phases_narrow_what_telemetry_tells(tmp_path: Path) -> None:
    inventory = pinned("llm_inference", "full_finetuning")
    observed = Recorder(2, inventory).add(HOUR, [work()] * 2).observe(tmp_path)
    assert told(observed, "GPU-0") == [(0, HOUR, "full_finetuning")]


def test_ranks_of_one_job_are_one_group_and_other_owners_are_not(tmp_path: Path) -> None:
    a = [[f"python pretrain_gpt.py --local_rank={i}"] for i in range(2)]
    recorder = Recorder(4).add(HOUR, [work()] * 4, [*a, [SFT], []])
    observed = recorder.observe(tmp_path)
    assert observed.gpus["GPU-0"].segments[0].gpus == ("GPU-0", "GPU-1")
    assert observed.gpus["GPU-2"].segments[0].gpus == ("GPU-2",)


def test_renaming_gpus_changes_no_phase(tmp_path: Path) -> None:
    first = Recorder(2).add(HOUR, [work(), rest()], [[PRETRAIN], []])
    second = Recorder(2)
    second.uuids = ["GPU-1", "GPU-0"]
    second.inventory = replace(first.inventory)
    second.add(HOUR, [work(), rest()], [[PRETRAIN], []])
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, two = first.observe(tmp_path / "a"), second.observe(tmp_path / "b")
    assert told(one, "GPU-0") == told(two, "GPU-1")
    assert told(one, "GPU-1") == told(two, "GPU-0")


def test_a_monthly_training_with_nothing_in_between(tmp_path: Path) -> None:
    month = 30 * 24 * HOUR
    recorder = Recorder(1)
    for _ in range(2):
        recorder.add(8 * HOUR, [work()], [[PRETRAIN]]).add(month - 8 * HOUR, [rest()])
    assert told(recorder.observe(tmp_path), "GPU-0") == [
        (0, 8 * HOUR, "training"),
        (8 * HOUR, month, "idle"),
        (month, month + 8 * HOUR, "training"),
        (month + 8 * HOUR, 2 * month, "idle"),
    ]
