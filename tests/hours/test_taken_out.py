"""A card that was taken out: no hours in the periods after it, and no word in today's verdict."""

from __future__ import annotations

from pathlib import Path

from advisor.assess import assess
from advisor.assessment import Period
from advisor.history import LocalHistory
from advisor.rulebook import Rulebook
from telemetry.inventory import GpuInfo, Inventory
from telemetry.store import Store
from telemetry.window import Row, Window

START = 1_772_409_600
DAY = 86_400
BOTH = ("GPU-a", "GPU-b")


def _store(path: Path) -> Path:
    """Two cards for two days, then GPU-a alone for two more."""
    with Store(path) as store:
        for day, uuids in ((0, BOTH), (2, BOTH[:1])):
            gpus = tuple(GpuInfo(uuid, i) for i, uuid in enumerate(uuids))
            document = Inventory("host", gpus=gpus).to_json()
            store.append(inventories=[(float(START + day * DAY), "host", document)])
            store.append(
                [
                    Window(
                        "host",
                        300,
                        start,
                        300,
                        {
                            ("gpu", uuid): Row({"utilization_ratio": 0.5, "covered_seconds": 300.0})
                            for uuid in uuids
                        },
                    )
                    for start in range(START + day * DAY, START + (day + 2) * DAY, 300)
                ]
            )
    return path


def test_a_card_that_was_taken_out_has_no_hours_after_it(tmp_path: Path) -> None:
    whole = Period(START, START + 4 * DAY)
    after = Period(START + 2 * DAY, START + 4 * DAY)
    with LocalHistory([_store(tmp_path / "s.db")]) as history:
        now = assess(history, "host", after, whole, Rulebook.load())
        all_of_it = assess(history, "host", whole, whole, Rulebook.load())
    assert [h.gpu_uuid for h in now.hours] == ["GPU-a"]
    assert {h.gpu_uuid for h in all_of_it.hours} == set(BOTH)
    assert round(sum(h for o in now.owners for h in o.hours.values())) == 48
    # Judged since the day on which the hardware became what it is.
    assert now.sized == all_of_it.sized == after
