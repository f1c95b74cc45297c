"""What the shipped scenarios stage is what Talla sees in them."""

from collections import Counter
from functools import cache
from typing import Any

import pytest

from advisor.catalogue.gpus import find_gpu
from telemetry.simulation import history, load_scenario, shipped_scenarios
from telemetry.simulation.hardware import hardware
from telemetry.states import Cause, State
from telemetry.window import Window
from tests.simulation.frames import frame, states

MONDAY = 1_736_121_600


@cache
def day(name: str) -> list[Window]:
    """One day of a scenario, drawn once."""
    return list(history(load_scenario(name), MONDAY, 1))


# The state that holds longest while the job runs, and its cause.
STAGED: dict[str, tuple[State, Cause | None]] = {
    "chatbot": (State.BUSY, None),
    "chatbot_70b_l40s": (State.BUSY, None),
    "finetuning": (State.BUSY, None),
    "finetuning_low_ram": (State.STARVED, Cause.HOST_MEMORY),
    "training": (State.STARVED, Cause.NETWORK_STORAGE),
    "training_fixed": (State.BUSY, None),
    "training_few_cores": (State.STARVED, Cause.CPU_DATALOADER),
    "training_hdd": (State.STARVED, Cause.LOCAL_STORAGE),
    "vision": (State.BUSY, None),
}


def test_every_scenario_is_loaded_and_its_staging_is_tested() -> None:
    assert set(shipped_scenarios()) == {*STAGED, "mixed"}
    for name in shipped_scenarios():
        load_scenario(name)


@pytest.mark.parametrize("name", STAGED)
def test_the_classifier_sees_what_is_staged(name: str) -> None:
    scenario = load_scenario(name)
    seen = Counter((s.state, s.cause) for s in states(scenario, day(name), 0))
    assert seen.most_common(1)[0][0] == STAGED[name]
    assert set(seen) <= {STAGED[name], (State.IDLE_FREE, None)}


def test_a_shared_server_shows_every_kind_of_waste() -> None:
    scenario = load_scenario("mixed")
    windows = list(history(scenario, MONDAY, 2))
    seen = [Counter(s.state for s in states(scenario, windows, gpu)) for gpu in range(8)]
    hours = [{state: count / 12 for state, count in gpu.items()} for gpu in seen]
    assert hours[0] == {State.IDLE_FREE: 24, State.IDLE_HELD: 24}
    assert hours[1] == {State.ORPHAN_HELD: 48}
    assert hours[2] == {State.BUSY: 10, State.IDLE_FREE: 38}
    assert hours[4] == {State.BUSY: 32, State.IDLE_FREE: 16}
    assert hours[7] == {State.IDLE_FREE: 48}


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("chatbot", 0.0, 0.02), ("chatbot_70b_l40s", 0.45, 0.75)],
)
def test_the_chatbots_need_what_the_story_says(name: str, low: float, high: float) -> None:
    columns = frame(day(name), ("engine", "8000")).columns
    peak = max(value or 0.0 for value in columns["kv_cache_usage_ratio_max"])
    assert low < peak < high
    assert not any(columns["requests_waiting_max"])


def busy_peak(name: str) -> float:
    scenario = load_scenario(name)
    key = ("gpu", scenario.server.gpus[0].uuid)
    busy = frame(day(name), key).columns["utilization_ratio_busy_ratio"]
    return max(value or 0.0 for value in busy)


def test_the_busy_shares_of_the_chatbots_fit_their_stories() -> None:
    """Added up over the cards and with a fifth to spare: two of eight, and two of two."""
    assert 8 * busy_peak("chatbot") / 0.8 < 2
    assert 1 < 2 * busy_peak("chatbot_70b_l40s") / 0.8 < 2


@pytest.mark.parametrize("changed", ["chatbot_70b_l40s", "training_fixed", "finetuning_low_ram"])
def test_a_reversal_keeps_the_work_of_its_base(changed: str) -> None:
    base, heir = load_scenario(changed.partition("_")[0]), load_scenario(changed)
    assert heir.server.host != base.server.host
    assert [job.name for job in heir.jobs] == [job.name for job in base.jobs]
    assert heir.jobs[0].alive == base.jobs[0].alive
    if changed != "chatbot_70b_l40s":
        assert heir.jobs[0].command == base.jobs[0].command
        assert heir.jobs[0].host_memory_bytes == base.jobs[0].host_memory_bytes


def test_twice_the_memory_would_do_for_the_training_run() -> None:
    scenario = load_scenario("training")
    needed = scenario.jobs[0].host_memory_bytes + scenario.server.system_memory_bytes
    assert scenario.server.memory_bytes < needed < 2 * scenario.server.memory_bytes


def test_the_cards_are_those_of_the_catalogue() -> None:
    for card in hardware().cards.values():
        facts: dict[str, Any] = {"pci_device_id": int(card.pci_device_id, 16)}
        known = find_gpu(card.name, card.memory_bytes, **facts)
        assert known is not None, card.name
        assert known.power_watts == card.power_limit_watts
        assert known.pcie_generation == card.pcie_generation
        assert known.compute_capability == tuple(map(int, card.compute_capability.split(".")))
        assert known.has_nvlink == (card.nvlink != "none")
        assert card.memory_bytes == known.memory_bytes
