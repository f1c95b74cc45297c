"""A failing reading costs its own metric and nothing else."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.probe import PATIENCE, Probe, ProbeSet, ReadingFailed, SourceGone, Trouble, classify


def failing(trouble: Trouble, reason: str = "why") -> Callable[[dict[str, float]], None]:
    def read(values: dict[str, float]) -> None:
        raise ReadingFailed(trouble, reason)

    return read


def giving(metric: str, value: float = 1.0) -> Callable[[dict[str, float]], None]:
    def read(values: dict[str, float]) -> None:
        values[metric] = value

    return read


class Scripted:
    """A source whose answers come from a list: a value, or what it raises."""

    def __init__(self, *answers: float | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self, values: dict[str, float]) -> None:
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        values["m"] = answer


def permanent() -> ReadingFailed:
    return ReadingFailed(Trouble.PERMANENT, "not supported")


def test_a_permanent_failure_is_dropped_with_its_reason_and_not_asked_again() -> None:
    source = Scripted(permanent())
    probes = ProbeSet((Probe(("m",), source), Probe(("n",), giving("n"))))
    for _ in range(3):
        assert probes.read() == {"n": 1.0}
    assert source.asked == 1
    assert probes.unavailable() == {"m": "not supported"}
    assert probes.errors_total == 0


def test_a_transient_failure_is_counted_and_asked_again() -> None:
    source = Scripted(OSError(5, "Input/output error"), 2.0)
    probes = ProbeSet((Probe(("m",), source),))
    assert probes.read() == {}
    assert probes.unavailable() == {"m": "Input/output error"}
    assert probes.read() == {"m": 2.0}
    assert (probes.unavailable(), probes.errors_total) == ({}, 1)


def test_the_next_source_takes_over_at_once_and_for_good() -> None:
    first = Scripted(permanent())
    probe = Probe(("m",), first, giving("m", 3.0))
    for _ in range(2):
        values: dict[str, float] = {}
        probe.read(values)
        assert values == {"m": 3.0}
    assert first.asked == 1
    assert probe.unavailable is None


def test_a_source_that_has_answered_before_is_not_dropped_for_a_moment_of_weakness() -> None:
    source = Scripted(1.0, permanent(), 2.0)
    probe = Probe(("m",), source)
    seen: list[dict[str, float]] = []
    for _ in range(3):
        values: dict[str, float] = {}
        probe.read(values)
        seen.append(values)
    assert seen == [{"m": 1.0}, {}, {"m": 2.0}]


def test_a_source_that_stays_away_is_dropped_in_the_end() -> None:
    source = Scripted(1.0, *(permanent() for _ in range(PATIENCE)))
    probe = Probe(("m",), source)
    for _ in range(PATIENCE + 10):
        probe.read({})
    assert source.asked == PATIENCE + 1
    assert probe.unavailable == "not supported"


@pytest.mark.parametrize("error", [ReadingFailed(Trouble.LOST, "lost"), SourceGone("gone")])
def test_the_loss_of_all_is_told_to_the_caller(error: Exception) -> None:
    with pytest.raises(type(error)):
        ProbeSet((Probe(("m",), Scripted(error)),)).read()


def test_files_that_are_not_there_stay_so_and_odd_contents_may_pass() -> None:
    missing = classify(FileNotFoundError(2, "No such file", "/proc/pressure/io"))
    assert (missing.trouble, missing.reason) == (
        Trouble.PERMANENT,
        "/proc/pressure/io does not exist",
    )
    assert classify(PermissionError(13, "no", "/x")).trouble is Trouble.PERMANENT
    assert classify(ValueError("bad line")).trouble is Trouble.TRANSIENT


@given(st.lists(st.sampled_from([None, Trouble.PERMANENT, Trouble.TRANSIENT]), max_size=8))
def test_whatever_fails_the_others_are_read(troubles: list[Trouble | None]) -> None:
    probes = ProbeSet(
        Probe((f"m{i}",), giving(f"m{i}") if trouble is None else failing(trouble))
        for i, trouble in enumerate(troubles)
    )
    for _ in range(3):
        values = probes.read()
        assert set(values) == {f"m{i}" for i, trouble in enumerate(troubles) if trouble is None}
        assert set(probes.unavailable()).isdisjoint(values)
        assert len(probes.unavailable()) + len(values) == len(troubles)
