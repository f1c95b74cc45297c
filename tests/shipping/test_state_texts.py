"""The state that is told of a window: judged once as it closes, else as it is shipped."""

import copy
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.config.settings import InfluxSettings
from agent.shipping.influx import Influx
from agent.state_texts import StateTexts
from telemetry.simulation import history, load_scenario
from telemetry.states import Classifier
from telemetry.store import Store
from telemetry.window import Window

START = 1_700_000_100


@pytest.fixture(scope="module")
def windows() -> list[Window]:
    return list(history(load_scenario("training"), START, 1 / 24))


def lines(store: Store) -> list[bytes]:
    influx = Influx(InfluxSettings(url="http://127.0.0.1:1"), StateTexts())
    return [line for _, w in store.windows_after(0, 10**6) for line in influx.window(w)[1]]


def states(store: Store) -> list[Mapping[str, str]]:
    return [
        row.texts
        for _, window in store.windows_after(0, 10**6)
        for key, row in window.rows.items()
        if key[0] == "gpu"
    ]


def test_it_makes_no_difference_when_a_state_was_judged(
    tmp_path: Path, windows: list[Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = copy.deepcopy(windows)
    StateTexts().keep(closed)
    with Store(tmp_path / "plain.db") as plain, Store(tmp_path / "told.db") as told:
        plain.append(windows)
        told.append(closed)
        assert not any("state" in texts for texts in states(plain))
        assert all(texts["state"] for texts in states(told))
        expected = lines(plain)
        monkeypatch.setattr(Classifier, "classify", None)  # nothing is judged twice
        assert lines(told) == expected
        host = windows[0].host
        for store in (plain, told):
            frames = store.frames(
                host, "gpu", 300, since=0, until=4e9, fields=["power_watts"], texts=True
            )
            assert frames
            assert all("gpu_model" in texts for frame in frames for texts in frame.texts)
            assert not any(t.keys() & {"state", "cause"} for f in frames for t in f.texts)


def test_a_fault_in_judging_costs_no_window(
    windows: list[Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Classifier, "classify", None)
    closed = copy.deepcopy(windows)
    StateTexts().keep(closed)
    assert closed == windows
