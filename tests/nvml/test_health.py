"""XIDs, ECC errors and remapped rows, from the fake driver to values and events."""

from collections.abc import Callable

from agent.nvml.client import NvmlEventKind
from agent.nvml.xids import Xids
from tests.nvml.conftest import Bench, by_index

Stage = Callable[..., Bench]


def test_an_xid_is_an_event_with_its_meaning_and_counts_in_its_second_alone(stage: Stage) -> None:
    bench = stage("gpus=2\ngpu1.xid=48@4\n")
    told: list[tuple[float, float]] = []
    texts: list[str | None] = []
    for _ in range(7):
        gpus = by_index(bench.tick())
        told.append((gpus[0].values["xid_hardware_errors"], gpus[1].values["xid_hardware_errors"]))
        texts.append(gpus[1].texts.get("xid"))
    assert [b for _, b in told].count(1.0) == 1
    assert {a for a, _ in told} == {0.0}
    assert [t for t in texts if t] == ["XID 48: an uncorrectable (double bit) memory error"]
    (event,) = (e for e in bench.client.take_events() if e.kind is NvmlEventKind.XID)
    assert event.gpu_uuid == bench.uuid(1)
    assert event.text == "GPU 1: XID 48: an uncorrectable (double bit) memory error"


def test_an_xid_of_a_program_is_not_the_hardware_s(stage: Stage) -> None:
    bench = stage("gpus=1\ngpu0.xid=31@2\n")
    rows = [by_index(bench.tick())[0].values for _ in range(5)]
    assert sum(row["xid_application_errors"] for row in rows) == 1.0
    assert sum(row["xid_hardware_errors"] for row in rows) == 0.0


def test_where_the_driver_has_no_events_xids_are_absent_and_not_zero(stage: Stage) -> None:
    bench = stage("gpus=1\nnvmlDeviceRegisterEvents=3\n")
    bench.tick()
    assert "xid_hardware_errors" not in by_index(bench.tick())[0].values


def test_only_new_ecc_errors_count(stage: Stage) -> None:
    bench = stage("gpus=1\ngpu0.ecc_uncorrected=square:20,3,5,0.5\n")  # 5 at first, 3, 5 again
    values = [by_index(bench.tick())[0].values["ecc_uncorrected_errors"] for _ in range(40)]
    assert values[0] == 0.0  # what was there before is history
    assert max(values) == 2.0
    assert values.count(2.0) <= 5


def test_remapped_rows_are_told_where_the_card_has_them(stage: Stage) -> None:
    bench = stage("gpus=1\n")
    values = by_index(bench.tick())[0].values
    assert (values["remap_pending"], values["remap_failed"]) == (0.0, 0.0)


def test_a_code_that_nobody_listed_is_told_as_the_hardware_s() -> None:
    assert Xids.load().counts([99_999]) == {
        "xid_hardware_errors": 1.0,
        "xid_application_errors": 0.0,
    }
