"""A server whose hardware changed is judged by what it was then, and by what was seen since."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.assess import assess
from advisor.assessment import Assessment, Period
from advisor.finding import Dimension, Verdict
from advisor.hardware_change import last_change
from advisor.history import LocalHistory
from advisor.rulebook import Rulebook
from advisor.sizing.thresholds import Thresholds
from telemetry.inventory import BlockDevice, GpuInfo, Inventory, Mount, Nic
from telemetry.simulation import Simulation, load_scenario
from telemetry.store import Store

DAY = 86_400
MONDAY = 1_736_121_600
CHANGE = MONDAY + 2 * DAY
END = MONDAY + 4 * DAY
HOUR = 3600.0
THRESHOLDS = Thresholds.load()
BARE = Inventory("h", memory_bytes=int(512e9), gpus=(GpuInfo("GPU-0"), GpuInfo("GPU-1")))


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days behind a NAS and short of RAM, then two on NVMe and with RAM."""
    path = tmp_path_factory.mktemp("mended") / "store.db"
    with Store(path) as store:
        for name, since in (("training", MONDAY), ("training_fixed", CHANGE)):
            scenario = load_scenario(name)
            scenario = replace(scenario, server=replace(scenario.server, host="node"))
            simulation = Simulation(scenario, MONDAY)
            drawn = [simulation.window(MONDAY + at) for at in range(0, DAY, 300)]
            # Cards keep their names, whatever the host of their scenario is called.
            cards = [gpu.uuid for gpu in scenario.inventory().gpus]
            store.append(
                (
                    replace(
                        window,
                        start=since + day + window.start - MONDAY,
                        rows={
                            (k[0], f"GPU-{cards.index(k[1])}", *k[2:])
                            if k[1:2] and k[1] in cards
                            else k: r
                            for k, r in window.rows.items()
                        },
                    )
                    for day in (0, DAY)
                    for window in drawn
                ),
                inventories=[
                    (
                        float(since),
                        "node",
                        replace(
                            scenario.inventory(),
                            gpus=tuple(
                                replace(
                                    gpu,
                                    uuid=f"GPU-{i}",
                                    nvlink_peers=tuple(f"GPU-{p}" for p in range(8) if p != i),
                                )
                                for i, gpu in enumerate(scenario.inventory().gpus)
                            ),
                        ).to_json(),
                    )
                ],
            )
    return path


def judged(path: Path, since: int, until: int) -> Assessment:
    period = Period(since, until)
    with LocalHistory([path]) as history:
        return assess(history, "node", period, period, Rulebook.load())


def storage(answer: Assessment) -> Verdict:
    (found,) = [f for f in answer.findings if f.dimension is Dimension.STORAGE]
    return found.verdict


def test_a_report_of_the_past_is_judged_by_the_hardware_of_then(mended: Path) -> None:
    then = judged(mended, MONDAY, CHANGE)
    assert then.inventory.memory_bytes == 512 << 30
    assert then.changed is None
    assert storage(then) is Verdict.UNDER


def test_a_fault_that_was_mended_is_no_longer_told(mended: Path) -> None:
    now = judged(mended, MONDAY, END)
    assert now.inventory.memory_bytes == 2 << 40
    assert now.changed is not None
    assert now.changed.time == CHANGE
    assert [str(what) for what in now.changed.what] == [
        "RAM",
        "where the data lie",
        "Fastest network link",
    ]
    assert now.sized == Period(CHANGE, END)
    assert storage(now) is Verdict.RIGHT
    assert now.told.since == MONDAY, "hours are told of the whole period"


def test_what_came_back_within_the_hour_is_no_change() -> None:
    lost = replace(BARE, gpus=BARE.gpus[:1])
    assert last_change([(0.0, BARE), (1e5, lost), (1e5 + 600.0, BARE)], THRESHOLDS) is None
    gone = last_change([(0.0, BARE), (1e5, lost), (2e5, BARE)], THRESHOLDS)
    assert gone is not None
    assert gone.time == 2e5
    taken = last_change([(0.0, BARE), (1e5, lost)], THRESHOLDS)
    assert taken is not None
    assert [str(w) for w in taken.what] == ["GPUs"]


@pytest.mark.parametrize(
    "after",
    [
        replace(BARE, memory_bytes=int(505e9)),
        replace(BARE, memory_bytes=None),
        replace(BARE, gpus=()),
        replace(BARE, purpose="training", power_feed_watts=9000.0),
        replace(BARE, nics=(Nic("eno1", "ethernet", int(1e9)),)),
        replace(BARE, block_devices=(BlockDevice("sda", "ssd", int(64e9)),)),
    ],
)
def test_what_is_unknown_or_sizes_nothing_is_no_change(after: Inventory) -> None:
    assert last_change([(0.0, BARE), (1e5, after)], THRESHOLDS) is None
    assert last_change([], THRESHOLDS) is None
    assert last_change([(0.0, BARE)], THRESHOLDS) is None


def test_a_faster_disk_under_the_data_is_a_change() -> None:
    def on(kind: str) -> Inventory:
        return replace(
            BARE,
            data_paths=("/data/set",),
            mounts=(Mount("/", "ext4", "/dev/sda1", "sda"), Mount("/data", "xfs", "/dev/b", "b")),
            block_devices=(BlockDevice("sda", "ssd", 1), BlockDevice("b", kind, int(4e12))),
        )

    found = last_change([(0.0, on("hdd")), (1e5, on("nvme"))], THRESHOLDS)
    assert found is not None
    assert [str(w) for w in found.what] == ["where the data lie"]


def test_the_inventories_of_a_period_begin_with_the_one_in_force(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store(path) as store:
        kept = [(at, "h", Inventory("h", memory_bytes=int(at))) for at in (100.0, 200.0, 300.0)]
        store.append(inventories=[(at, host, i.to_json()) for at, host, i in kept])
    with LocalHistory([path]) as history:
        for since, until, times in (
            (150.0, 250.0, [100.0, 200.0]),
            (200.0, 300.0, [200.0]),
            (0.0, 150.0, [100.0]),
            (350.0, 400.0, [300.0]),
        ):
            assert [t for t, _ in history.inventories("h", since=since, until=until)] == times
        # None was kept by then: the newest, with the period's own begin.
        (only,) = history.inventories("h", since=0.0, until=50.0)
        assert only == (0.0, Inventory("h", memory_bytes=300))
        assert history.inventories("nobody", since=0.0, until=50.0) == []
