"""What is exported and imported again is the same 5-minute windows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from advisor.cli import main
from advisor.importers.keeping import Existing
from telemetry.metrics import COVERED_SECONDS, DISK, ENGINE, GPU, HOST, MOUNT, NIC, Family
from telemetry.store import Store
from telemetry.window import Key, Row, Window
from tests.importers.golden import windows_of

_START = 1_700_000_000
_UUIDS = ("GPU-0f", "GPU-1f", "MIG-2f/1/0")


def _values(family: Family) -> st.SearchStrategy[dict[str, float]]:
    """Some fields of a family, at the store's resolution, and the coverage."""
    scales = family.scales()
    shares = {n for n in scales if "_ratio" in n and not n.endswith("_count")}

    def field(name: str) -> st.SearchStrategy[float]:
        most = round(scales[name]) if name in shares else 100_000_000
        return st.integers(0, most).map(lambda n: n / scales[name])

    fields = [n for n in family.fields() if n != COVERED_SECONDS]
    return st.fixed_dictionaries(
        {COVERED_SECONDS: st.integers(1, 30000).map(lambda n: n / 100)},
        optional={name: field(name) for name in fields},
    )


def _row(family: Family, **texts: st.SearchStrategy[str]) -> st.SearchStrategy[Row]:
    words = st.fixed_dictionaries({}, optional=dict(texts))
    return st.builds(Row, _values(family), words)


_WORD = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1).filter(
    lambda t: (
        t.lower() not in ("-", "n/a", "na", "nan", "none", "null", "err!") and not t.startswith("[")
    )
)


@st.composite
def _rows(draw: st.DrawFn) -> dict[Key, Row]:
    rows: dict[Key, Row] = {}
    for uuid in draw(st.lists(st.sampled_from(_UUIDS), unique=True)):
        rows["gpu", uuid] = draw(_row(GPU, error=_WORD))
        rows["gpu", uuid].texts["gpu_model"] = "NVIDIA L4"
    others: dict[Key, Family] = {
        ("host",): HOST,
        ("disk", "nvme0n1"): DISK,
        ("mount", "/data, and more"): MOUNT,
        ("nic", "eth0"): NIC,
    }
    for key in draw(st.lists(st.sampled_from(sorted(others)), unique=True)):
        rows[key] = draw(_row(others[key]))
    if any(key[0] == "gpu" for key in rows) and draw(st.booleans()):
        rows["engine", "8000"] = draw(_row(ENGINE, model=_WORD))
    return rows


@st.composite
def _windows(draw: st.DrawFn) -> list[Window]:
    windows: list[Window] = []
    for host in ("a", 'b "the second"'):
        start = _START
        for rows in draw(st.lists(_rows(), max_size=4)):
            start += draw(st.sampled_from((0, 0, 300, 86_400, 17)))
            seconds = draw(st.sampled_from((300, 300, 41)))
            if rows:
                windows.append(Window(host, 300, start, seconds, rows))
            start += seconds
    return windows


@given(_windows())
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.generate],  # shrinking windows of a hundred fields takes longer than CI has
)
def test_export_and_import_give_the_same_windows(windows: list[Window]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, second, csv = (Path(folder) / n for n in ("first.db", "second.db", "talla.csv"))
        with Store(first) as store:
            store.append(windows)
        code = main(["--debug", "export", "--store", str(first), "-o", str(csv)])
        if not windows:
            assert code == 1
            return
        assert code == 0
        assert main(["--debug", "import", str(csv), "--store", str(second)]) == 0
        assert windows_of(second) == windows_of(first)


def test_processes_come_back_without_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = ["vllm serve m --api-key hunter2", "python train.py", "python train.py"]
    rows: dict[Key, Row] = {("gpu", "GPU-0f"): Row({COVERED_SECONDS: 300.0})}
    for slot, command in enumerate(commands):
        rows["gpu_process", "GPU-0f", str(slot)] = Row(
            {COVERED_SECONDS: 300.0}, {"command": command}
        )
    with Store(tmp_path / "a.db") as store:
        store.append([Window("h", 300, _START, 300, rows)])
    assert main(["export", "--store", str(tmp_path / "a.db")]) == 0
    (tmp_path / "a.csv").write_text(capsys.readouterr().out)
    assert main(["import", str(tmp_path / "a.csv"), "--store", str(tmp_path / "b.db")]) == 0
    (window,) = windows_of(tmp_path / "b.db")
    seen = {k[2]: r for k, r in window.rows.items() if k[0] == "gpu_process"}
    assert [seen[s].texts["command"].split()[0] for s in ("0", "1", "2")] == [
        "vllm",
        "python",
        "python",
    ]
    assert "hunter2" not in str(seen)
    assert all(row.values == {COVERED_SECONDS: 300.0} for row in seen.values())


def test_two_imports_of_one_host_are_joined(tmp_path: Path) -> None:
    """GPU 0 from one log and GPU 1 from another are one server."""
    store = tmp_path / "s.db"
    for gpu in (0, 1):
        log = tmp_path / f"gpu{gpu}.csv"
        rows = "".join(f"{_START + n},{gpu},{10 * gpu + 10}\n" for n in range(20))
        log.write_text("timestamp,index,utilization.gpu\n" + rows)
        assert main(["import", str(log), "--host", "h", "--store", str(store)]) == 0
    (window,) = [w for w in windows_of(store) if w.tier == 300]
    assert {k[1]: r.values["utilization_ratio"] for k, r in window.rows.items()} == {
        "imported:h:0": pytest.approx(0.1),
        "imported:h:1": pytest.approx(0.2),
    }
    with Store(store) as opened:
        assert Existing(opened, "h", _START, _START + 20).origin(5) == _START


def test_windows_that_cut_into_others_are_left_out_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "s.db"
    head = "timestamp,index,utilization.gpu\n"
    for name, begin in (("a.csv", 0), ("b.csv", 100)):
        rows = "".join(f"{_START + begin + n},0,50\n" for n in range(600))
        (tmp_path / name).write_text(head + rows)
        assert main(["import", str(tmp_path / name), "--host", "h", "--store", str(store)]) == 0
    assert "windows left out" in capsys.readouterr().out
    covered = sum(
        r.values[COVERED_SECONDS]
        for w in windows_of(store)
        if w.tier == 300
        for r in w.rows.values()
    )
    assert covered <= 700, "no second is counted twice"
