"""A long period told month by month is told as if it had been read at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import advisor.long_phases
from advisor.commands.reading import Source
from advisor.history import LocalHistory
from advisor.long_phases import joined, long_segments
from advisor.phase import Phase, Segment
from tests.phases.recorded import HOUR, PRETRAIN, SFT, VLLM, Recorder, rest, work


def segment(start: int, end: int, phase: Phase = Phase.TRAINING) -> Segment:
    return Segment("host", "GPU-0", start, end, phase, 0.9)


def test_work_over_the_end_of_a_month_is_one_segment() -> None:
    assert joined([[segment(0, 100)], [segment(100, 150)]], 900.0) == [segment(0, 150)]


def test_a_short_pause_at_the_end_of_a_month_is_bridged() -> None:
    first = [segment(0, 100), segment(100, 400, Phase.IDLE)]
    second = [segment(400, 700, Phase.IDLE), segment(700, 900)]
    assert joined([first, second], 900.0) == [segment(0, 900)]
    long = [segment(400, 1100, Phase.IDLE), segment(1100, 1500)]
    assert joined([first, long], 900.0) == [
        segment(0, 100),
        segment(100, 1100, Phase.IDLE),
        segment(1100, 1500),
    ]


def test_another_job_is_another_segment() -> None:
    other = replace(segment(100, 200), owner="ben")
    assert joined([[segment(0, 100)], [other]], 900.0) == [segment(0, 100), other]


def test_months_give_what_the_whole_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(2)
    for _ in range(4):
        recorder.add(5 * HOUR, [work(0.4, 300, 72), work()], [[VLLM], [PRETRAIN]])
        recorder.add(2 * HOUR, [rest(72), rest(60)], [[VLLM], [PRETRAIN]])  # a training that waits
        recorder.add(7 * HOUR, [work(0.4, 300, 72), rest()], [[VLLM, SFT], []])
        recorder.add(2 * HOUR, [rest(), None])
    whole = recorder.observe(tmp_path)
    store = tmp_path / "recorded.db"
    monkeypatch.setattr(advisor.long_phases, "_MONTH", 86_400)
    with LocalHistory([store]) as history:
        inventory, segments = long_segments(Source((store,)), history, whole.host, whole.period)
    assert inventory == whole.inventory
    expected = [s for timeline in whole.gpus.values() for s in timeline.segments]
    told = [(s.gpu_uuid, s.start, s.end, s.phase, s.confidence, s.model) for s in segments]
    assert told == [(s.gpu_uuid, s.start, s.end, s.phase, s.confidence, s.model) for s in expected]
