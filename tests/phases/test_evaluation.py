"""The evaluation: outcomes, changes that must not matter, and real runs where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import AdvisorError
from advisor.evaluation.judging import told_of
from advisor.evaluation.recordings import Recording, changes, compatible, poor, read_folder
from advisor.phase import Phase
from tests.traces import traces as traces

HEADER = ("timestamp", "gpu", "power_w", "gpu_util_pct", "mem_used_mib", "mem_total_mib")
ROWS = [(str(t), str(g), "300", "90", "1000", "81559") for t in range(40) for g in range(4)]
RUN = Recording("train_h100x4_x", Phase.TRAINING, "NVIDIA H100 80GB HBM3", HEADER, ROWS)

UNKNOWN: frozenset[Phase] = frozenset()
BROAD = frozenset({Phase.TRAINING_OR_FINETUNING})


def test_outcomes() -> None:
    assert RUN.outcome(UNKNOWN) == "abstained"
    assert RUN.outcome(frozenset({Phase.TRAINING})) == "right"
    assert RUN.outcome(BROAD) == "broader"
    assert RUN.outcome(BROAD | {Phase.INFERENCE}) == "wrong"
    assert RUN.outcome(frozenset({Phase.LORA_FINETUNING})) == "wrong"


def test_a_changed_run_may_lose_its_phase_and_take_no_other() -> None:
    assert compatible(BROAD, UNKNOWN, RUN)
    assert compatible(BROAD, BROAD, RUN)
    assert not compatible(BROAD, frozenset({Phase.INFERENCE}), RUN)
    assert not compatible(UNKNOWN, frozenset({Phase.LORA_FINETUNING}), RUN)


def test_changes_change_what_they_say() -> None:
    made = dict(changes(RUN))
    gpu, used = HEADER.index("gpu"), HEADER.index("mem_used_mib")
    assert {row[gpu] for row in made["GPUs permuted"].rows} == {"0", "1", "2", "3"}
    assert made["GPUs permuted"].rows != RUN.rows
    assert {row[gpu] for row in made["GPUs renamed"].rows} == {"20", "21", "22", "23"}
    assert 0.7 < len(made["a fifth of the rows dropped"].rows) / len(ROWS) < 0.9
    assert len(made["first half"].rows) == len(made["second half"].rows) == len(ROWS) // 2
    assert {row[used] for row in made["card memory times 2"].rows} == {"2000.0"}
    assert "power_w" not in made["without power_w"].header
    assert "fan_pct" in made["with fan_pct"].header
    assert set(poor(RUN).header) == {"timestamp", "gpu", "power_w", "gpu_util_pct"}


def test_a_recording_tells_its_truth_by_its_name(tmp_path: Path) -> None:
    RUN.write(tmp_path)
    (found,) = read_folder(tmp_path)
    assert (found.name, found.truth, found.card) == (RUN.name, RUN.truth, RUN.card)
    (tmp_path / "something.csv").write_text("timestamp\n")
    with pytest.raises(AdvisorError, match="something"):
        read_folder(tmp_path)


def judged(traces: Path, some: slice) -> tuple[int, list[str]]:
    """How many recordings are told, and every change that made one another phase."""
    told, strange = 0, []
    for recording in read_folder(traces):
        before = told_of(recording)
        told += recording.outcome(before) in {"right", "broader"}
        assert recording.outcome(before) != "wrong", recording.name
        for name, changed in list(changes(recording))[some]:
            if not compatible(before, told_of(changed), recording):
                strange.append(f"{recording.name}: {name}")
    return told, strange


def test_real_runs_keep_their_phase(traces: Path) -> None:
    told, strange = judged(traces, slice(2, 3))
    assert told >= 5
    assert strange == []


@pytest.mark.long
def test_real_runs_keep_their_phase_whatever_is_changed(traces: Path) -> None:
    _, strange = judged(traces, slice(None))
    assert strange == []
