"""The two paths of a history are one, and cheap."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from telemetry.aggregate import Aggregator
from telemetry.signals import Signals
from telemetry.simulation import Simulation, history, load_scenario, samples, shipped_scenarios
from telemetry.simulation.history import SAMPLED_SECONDS
from telemetry.store import Store, StoreReader
from telemetry.window import Window

MONDAY = 1_736_121_600  # 6 January 2025, 00:00 UTC
DAY = 86400


def sampled(simulation: Simulation, host: str, start: int) -> Window:
    aggregator = Aggregator(host, Signals.load())
    windows = [w for s in range(start, start + 300) for w in aggregator.add(simulation.sample(s))]
    return next(w for w in [*windows, *aggregator.flush()] if w.tier == 300)


# Without shrinking: an example is a scenario and a time, and none is simpler than another.
@settings(max_examples=20, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.sampled_from(shipped_scenarios()), st.integers(0, 7 * DAY // 300 - 1))
def test_a_window_straight_from_the_signals_is_that_of_its_samples(name: str, number: int) -> None:
    """Also one that an earlier draw stands for: the walk to it passes every phase of its jobs."""
    scenario = load_scenario(name)
    start = MONDAY + number * 300
    walk = Simulation(scenario, MONDAY)
    direct = [walk.window(begin) for begin in range(start - 8 * 300, start + 300, 300)][-1]
    slow = sampled(Simulation(scenario, MONDAY), scenario.server.host, start)
    assert (direct.host, direct.start, direct.seconds) == (slow.host, slow.start, slow.seconds)
    assert direct.rows.keys() == slow.rows.keys()
    for key, row in direct.rows.items():
        other = slow.rows[key]
        assert row.texts == other.texts
        assert row.values.keys() == other.values.keys()
        values = {field: v for field, v in row.values.items() if field != "energy_joules_total"}
        expected = {field: other.values[field] for field in values}
        assert values == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.fixture(scope="module")
def week() -> list[Window]:
    return list(history(load_scenario("training"), MONDAY, 7))


def test_a_week_has_every_window_once_and_ends_in_both_tiers(week: list[Window]) -> None:
    long = [w for w in week if w.tier == 300]
    short = [w for w in week if w.tier == 10]
    assert [w.start for w in long] == list(range(MONDAY, MONDAY + 7 * DAY, 300))
    end = MONDAY + 7 * DAY
    assert [w.start for w in short] == list(range(end - SAMPLED_SECONDS, end, 10))
    assert all(w.rows.keys() == long[0].rows.keys() for w in week)
    assert sum(1 for key in long[0].rows if key[0] == "gpu") == 8


def test_energy_is_power_over_time_throughout(week: list[Window]) -> None:
    long = [w for w in week if w.tier == 300]
    key = next(key for key in long[0].rows if key[0] == "gpu")
    for before, after in pairwise(long):
        joules = (
            after.rows[key].values["energy_joules_total"]
            - before.rows[key].values["energy_joules_total"]
        )
        assert joules == pytest.approx(after.rows[key].values["power_watts"] * 300, rel=1e-6)


def test_a_week_is_drawn_from_few_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a week costs is the windows that are drawn second by second: here it is counted."""
    drawn = 0
    draw = Simulation._draw

    def counted(self: Simulation, *arguments: object) -> object:
        nonlocal drawn
        drawn += 1
        return draw(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Simulation, "_draw", counted)
    simulation = Simulation(load_scenario("training"), MONDAY)
    for start in range(MONDAY, MONDAY + 7 * DAY, 300):
        simulation.window(start)
    assert 1 <= drawn <= 6  # five-minute phases of a half hour


def test_cards_and_windows_differ_a_little_and_never_pass_the_limit(week: list[Window]) -> None:
    rows = [row for w in week for key, row in w.rows.items() if key[0] == "gpu"]
    powers = {row.values["power_watts"] for row in rows}
    assert len(powers) > len(rows) / 100
    assert all(
        row.values["power_watts_max"] <= row.values["power_limit_watts"]
        and row.values["memory_used_bytes_max"] <= row.values["memory_total_bytes"]
        for row in rows
    )


def test_the_same_scenario_is_the_same_history() -> None:
    scenario = load_scenario("mixed")
    assert list(history(scenario, MONDAY, 0.1)) == list(history(scenario, MONDAY, 0.1))


def test_a_run_has_its_own_process_ids() -> None:
    scenario = load_scenario("finetuning")
    simulation = Simulation(scenario, MONDAY)
    first, night, second = (simulation.window(MONDAY + 3600 * hour) for hour in (12, 24, 36))
    pids = [
        {row.texts["pid"] for key, row in w.rows.items() if key[0] == "gpu_process"}
        for w in (first, night, second)
    ]
    assert len(pids[0]) == len(pids[2]) == 4
    assert not pids[1]
    assert not pids[0] & pids[2]


def test_a_history_goes_into_a_store_and_comes_back(tmp_path: Path) -> None:
    scenario = load_scenario("chatbot_70b_l40s")
    windows = list(history(scenario, MONDAY, 0.25))
    path = tmp_path / "talla.db"
    with Store(path) as store:
        store.append(windows)
    with StoreReader(path) as reader:
        kept = [window for _, window in reader.windows_after(0, 10_000)]
    assert [(w.tier, w.start, w.seconds) for w in kept] == [
        (w.tier, w.start, w.seconds) for w in windows
    ]
    for mine, theirs in zip(kept, windows, strict=True):
        assert mine.rows.keys() == theirs.rows.keys()
        for key, row in mine.rows.items():
            assert row.texts == theirs.rows[key].texts
            # The store rounds each metric to its resolution, which its own tests hold.
            assert row.values.keys() == theirs.rows[key].values.keys()


def test_samples_carry_texts_and_stand_for_a_second() -> None:
    scenario = load_scenario("chatbot")
    (sample,) = samples(scenario, MONDAY + 10 * 3600, 1)
    gpu = scenario.server.gpus[3].uuid
    texts = sample.texts["gpu_process", gpu, "0"]
    assert texts["workload"] == "llm_inference"
    assert texts["model"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert texts["model_source"] == "command"
    assert sample.texts["gpu", gpu]["gpu_model"] == "NVIDIA H100 80GB HBM3"
    assert sample.texts["engine", "8000"]["gpu_uuids"].count("GPU-") == 8
    assert sample.seconds == 1
