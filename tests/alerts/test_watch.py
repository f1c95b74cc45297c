"""States and metrics that need several windows or GPUs, through the real aggregator."""

from __future__ import annotations

from collections.abc import Callable

from agent.watch import Watch
from telemetry.state import State
from telemetry.window import Key, Sample, Window
from tests.alerts.staged import GPU, SERVER, START, UUID, judged, windows_of
from tests.states.stage import GIB, HEALTHY_HOST, Second, held, idle, step

OTHER: Key = ("gpu", "GPU-2")


def staged(seconds: int, gpus: Callable[[int], dict[Key, Second]], **texts: str) -> list[Window]:
    def samples() -> list[Sample]:
        made = []
        for i in range(seconds):
            rows = {("host",): dict(HEALTHY_HOST), **{k: dict(r) for k, r in gpus(i).items()}}
            rows = {k: r for k, r in rows.items() if r}
            errors = {k: {"error": "GPU is lost"} for k, r in gpus(i).items() if not r}
            process: dict[Key, dict[str, str]] = (
                {("gpu_process", UUID, "0"): texts} if texts else {}
            )
            made.append(Sample(START + i, rows, {**errors, **process}))
        return made

    return list(windows_of(samples()))


def values(windows: list[Window], key: Key, name: str) -> list[float | None]:
    watch = Watch()
    watch.inventory = SERVER
    found = []
    for window in windows:
        if window.tier == 10:
            watch.look(window)
            found.append(window.rows[key].values.get(name) if key in window.rows else None)
    return found


def test_a_gpu_that_answers_errors_is_lost_and_the_other_is_not() -> None:
    windows = staged(60, lambda i: {GPU: step() if i < 30 else {}, OTHER: step()})
    assert values(windows, GPU, "lost_ratio") == [0.0] * 3 + [1.0] * 3
    assert values(windows, OTHER, "lost_ratio") == [0.0] * 6


def test_a_gpu_that_the_driver_no_longer_lists_is_lost_too() -> None:
    def gpus(i: int) -> dict[Key, Second]:
        return {GPU: step(), OTHER: step()} if i < 30 else {OTHER: step()}

    assert values(staged(60, gpus), GPU, "lost_ratio") == [0.0] * 3 + [1.0] * 3


def test_a_driver_that_gives_nothing_at_all_loses_no_gpu() -> None:
    """That is told by the age of the readings, once for the whole host."""
    windows = staged(60, lambda i: {GPU: step(), OTHER: step()} if i < 30 else {})
    assert values(windows, GPU, "lost_ratio") == [0.0] * 3 + [None] * 3


def test_a_released_gpu_is_nobody_s_fault() -> None:
    watch = Watch()
    windows = staged(60, lambda i: {GPU: step()} if i < 30 else {})
    for window in windows:
        watch.released = window.start >= START + 30
        seen = watch.look(window)
        if watch.released:
            assert not [key for key in seen if key[0] == "gpu"]


def test_a_link_counts_under_load_alone() -> None:
    slow = {"pcie_link_generation": 5.0, "pcie_link_width": 8.0}
    down = {"pcie_link_generation": 1.0, "pcie_link_width": 16.0}
    windows = staged(40, lambda i: {GPU: step(**slow) if i < 20 else idle(**down)})
    assert values(windows, GPU, "pcie_link_ratio") == [0.5, 0.5, None, None]


def test_memory_that_grows_for_half_an_hour_is_told_with_the_time_that_is_left() -> None:
    windows = staged(3000, lambda i: {GPU: step(gib=40 + i / 100)})
    found = values(windows, GPU, "memory_full_seconds")
    first = next(i for i, value in enumerate(found) if value is not None)
    assert 175 <= first <= 185  # half an hour
    left = found[first]
    assert left is not None
    assert abs(left - (80 - 40 - 1800 / 100) * 100) < 60


def test_a_start_that_fills_the_card_is_no_leak() -> None:
    windows = staged(3000, lambda i: {GPU: step(gib=min(72.0, i / 10))})
    assert set(values(windows, GPU, "memory_full_seconds")) == {None}


def test_all_idle_needs_all_of_them() -> None:
    windows = staged(40, lambda i: {GPU: held(), OTHER: step() if i < 20 else idle()})
    assert values(windows, ("host",), "gpus_idle_ratio") == [0.5, 0.5, 1.0, 1.0]


def test_a_process_list_that_is_empty_while_kernels_run_is_not_believed() -> None:
    blind = {"process_count": 0.0}
    windows = staged(1300, lambda i: {GPU: step(**blind) if i < 60 else held(**blind)})
    assert [t.rule for t in judged(windows) if "orphan" in t.rule] == []


def test_memory_of_a_killed_process_is_told_after_ten_minutes() -> None:
    windows = staged(1000, lambda i: {GPU: step() if i < 60 else {**held(), "process_count": 0.0}})
    (told,) = judged(windows)
    assert (told.rule, told.at) == ("gpu_orphan_held", 660)


def test_states_are_those_of_the_one_function() -> None:
    watch = Watch()
    windows = [w for w in staged(40, lambda i: {GPU: step() if i < 20 else idle()}) if w.tier == 10]
    states = [watch.look(window)[GPU].state for window in windows]
    assert [s.state for s in states if s is not None] == [
        State.BUSY,
        State.BUSY,
        State.IDLE_FREE,
        State.IDLE_FREE,
    ]


def test_what_was_learned_survives_a_restart() -> None:
    before = Watch()
    before.inventory = SERVER
    for window in staged(30, lambda i: {GPU: step(), OTHER: step()}):
        before.look(window)
    after = Watch()
    after.restore(before.memory(), START + 60.0)
    (window, *_) = staged(10, lambda i: {OTHER: step()})
    assert after.look(window)[GPU].values["lost_ratio"] == 1.0
    much_later = Watch()
    much_later.restore(before.memory(), START + 60 * 86_400.0)
    (window, *_) = staged(10, lambda i: {OTHER: step()})
    assert GPU not in much_later.look(window)


def test_a_card_that_was_never_seen_is_missed_only_where_the_number_is_declared() -> None:
    for expected, missing in ((None, None), (2, 1.0), (1, 0.0)):
        watch = Watch(expected_gpus=expected)
        (window, *_) = staged(10, lambda i: {GPU: step()})
        assert watch.look(window)[("host",)].values.get("gpus_missing") == missing


def test_growth_is_a_share_of_the_card() -> None:
    windows = staged(3000, lambda i: {GPU: step(gib=40 + i / 10_000)})  # 30 MiB in 5 minutes
    assert set(values(windows, GPU, "memory_full_seconds")) == {None}
    assert windows[0].rows[GPU].values["memory_total_bytes"] == 80 * GIB


def test_an_instance_that_is_configured_away_is_not_lost_but_its_card_is() -> None:
    instance: Key = ("gpu", f"{UUID}/1/0")
    watch = Watch(expected_gpus=2)
    windows = staged(60, lambda i: {GPU: step(), instance: step()} if i < 30 else {OTHER: step()})
    found = []
    for window in windows:
        if window.tier == 10:
            watch.look(window)
            lost = {k: r.values["lost_ratio"] for k, r in window.rows.items() if k[0] == "gpu"}
            found.append((lost, window.rows[("host",)].values["gpus_missing"]))
    assert found[0] == ({GPU: 0.0, instance: 0.0}, 1.0)
    assert found[-1] == ({GPU: 1.0, OTHER: 0.0}, 0.0)


def test_a_card_that_was_taken_out_on_purpose_is_forgotten() -> None:
    watch = Watch(expected_gpus=1)
    for window in staged(60, lambda i: {GPU: step(), OTHER: step()} if i < 30 else {OTHER: step()}):
        watch.look(window)
        assert not any(row.values.get("lost_ratio") for row in window.rows.values())
