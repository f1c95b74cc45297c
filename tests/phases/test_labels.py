"""What people say of windows: kept, told, and learned of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.classifier.model import Models
from advisor.cli import main
from advisor.labels import read_labels
from advisor.phase import Phase
from advisor.state import State
from tests.phases.recorded import HOUR, START, Recorder, work

UNCLEAR = work(0.99, 425, 31)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    Recorder(2).add(2 * HOUR, [UNCLEAR] * 2).observe(tmp_path)
    (tmp_path / "advisor.toml").write_text(f'[service]\nstate = "{tmp_path / "advisor.db"}"\n')
    return tmp_path / "recorded.db"


def run(capsys: pytest.CaptureFixture[str], store: Path, *words: str) -> tuple[int, str, str]:
    config = ["--config", str(store.parent / "advisor.toml")]
    code = main([*words, *config])
    return code, *capsys.readouterr()


def times(first: int, last: int) -> list[str]:
    return ["--from", str(START + 300 * first), "--until", str(START + 300 * last)]


def test_a_label_is_told_from_then_on_and_taken_back(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    read = ["--store", str(store)]
    code, out, _ = run(
        capsys, store, "label", "lora_finetuning", "--gpu", "1", *times(0, HOUR), *read
    )
    assert (code, out.split(":")[0]) == (0, "label 1")
    _, out, _ = run(capsys, store, "phases", "--json", *read)
    told = [(s["gpu_uuid"], s["phase"], s["confidence"]) for s in json.loads(out)]
    assert told == [
        ("GPU-0", "unknown", 0.0),
        ("GPU-1", "lora_finetuning", 1.0),
        ("GPU-1", "unknown", 0.0),
    ]
    assert "lora_finetuning" in run(capsys, store, "label")[1]
    assert run(capsys, store, "label", "--remove", "1")[0] == 0
    _, out, _ = run(capsys, store, "phases", "--json", *read)
    assert {s["phase"] for s in json.loads(out)} == {"unknown"}
    assert run(capsys, store, "label", "--remove", "1")[0] == 1


def test_what_is_wrong_is_said(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read = ["--store", str(store)]
    assert run(capsys, store, "label", "training", *read)[0] == 2
    assert run(capsys, store, "label", "training", *times(0, 3), "--gpu", "7", *read)[0] == 2
    assert run(capsys, store, "label", "training", *times(900, 950), *read)[0] == 1


def test_labels_join_the_table(tmp_path: Path) -> None:
    row = {"duty_ratio": 1.0, "utilization_ratio": 0.99, "power_ratio": 0.6, "alike_gpus": 2.0}
    path = tmp_path / "advisor.db"
    with State(path) as state:
        state.label([("host", "GPU-0", 0, 600, "training", json.dumps(row))] * 300, "ana")
    labels = read_labels(path)
    assert labels.at("host", "GPU-0", 300) is not None
    assert labels.at("host", "GPU-0", 600) is None
    assert labels.at("other", "GPU-0", 300) is None
    columns = ("duty_ratio", "utilization_ratio", "power_ratio", "alike_gpus")
    models: Models = labels.models
    ((phase, probability),) = models.of(columns).judge([row])
    assert (phase, probability > 0.8) == (Phase.TRAINING_OR_FINETUNING, True)


def test_no_database_is_no_label(tmp_path: Path) -> None:
    assert read_labels(tmp_path / "absent.db").all == ()
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"not a database at all" * 100)
    assert read_labels(broken).all == ()
