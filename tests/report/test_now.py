"""`top`: how it stands now, in 80 columns, without obeying what a machine says."""

from __future__ import annotations

import io
import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from advisor.cli import main
from advisor.report.language import LANGUAGES, Language
from advisor.report.now import screen
from advisor.web.picture import AlertNow, GpuNow, HostNow, Picture, ProcessNow
from telemetry.aggregate import Aggregator
from telemetry.signals import Signals
from telemetry.simulation import load_scenario, samples
from telemetry.store import Store

NOW = 1_772_409_600.0
READINGS = {
    "utilization_ratio": 0.5,
    "memory_used_bytes": 60e9,
    "memory_total_bytes": 80e9,
    "power_watts": 512.4,
    "temperature_celsius": 61.0,
    "pcie_rx_bytes_per_second": 2e9,
    "pcie_tx_bytes_per_second": 1e9,
}
EVIL = "\x1b[2J\x1b]0;owned\x07[bold red]x[/]"


def shown(picture: Picture, code: str = "en", width: int = 80, now: float = NOW + 5) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None)
    told = screen(picture, Language.load(code), now, narrow=width < 110)
    console.print(told, highlight=False)
    return out.getvalue().replace("\u00a0", " ")


def host(*gpus: GpuNow, name: str = "trainer-1") -> HostNow:
    readings = {"cpu_busy_ratio": 0.25, "memory_used_bytes": 128e9, "memory_total_bytes": 1e12}
    return HostNow(name, NOW, 10.0, gpus, readings)


BUSY = GpuNow(
    "GPU-a",
    NOW,
    0,
    "NVIDIA H100",
    "starved",
    "network_storage",
    state_since=NOW - 720,
    readings=READINGS,
    processes=(ProcessNow("python", owner="maria", model="meta-llama/Llama-3.1-8B"),),
)


@pytest.mark.parametrize("code", LANGUAGES)
def test_it_tells_state_cause_activity_and_whose_work_it_is(code: str) -> None:
    alert = AlertNow("trainer-1", "gpu_lost", "g", NOW - 3600, True, "critical", "t", "GPU lost")
    over = AlertNow("trainer-1", "x", "y", NOW, False, "warning", "t", "it is over")
    lost = GpuNow("GPU-b", NOW, 1, error="NVML: GPU is lost")
    text = shown(Picture((host(BUSY, lost),), (alert, over)), code)
    assert max(map(cell_len, text.splitlines())) <= 80
    flat = " ".join(text.split())
    for part in ("maria", "50 %", "60/80 GB", "512 W", "CPU 25 %", "GPU is lost", "GPU lost 1 h"):
        assert part in flat
    assert "it is over" not in flat
    if code == "en":
        assert "kept waiting" in flat
        assert "12 min" in flat
    wide = shown(Picture((host(BUSY),)), code, width=140)
    assert "61" in wide
    assert "3 GB/s" in wide


def test_old_data_are_told_as_old() -> None:
    assert "No new data" not in shown(Picture((host(BUSY),)))
    assert "No new data for 10 min" in shown(Picture((host(BUSY),)), now=NOW + 600)
    assert "no data" in shown(Picture((HostNow("new-1"),)))
    assert "Nothing was recorded here yet." in shown(Picture())


def test_names_cannot_command_the_terminal() -> None:
    gpu = GpuNow("GPU-a", NOW, 0, EVIL, error=EVIL, processes=(ProcessNow(EVIL, owner=EVIL),))
    alert = AlertNow(EVIL, EVIL, EVIL, NOW, True, EVIL, EVIL, EVIL, owner=EVIL)
    text = shown(Picture((host(gpu, name=EVIL),), (alert,)))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold red]x[/]" in text


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two minutes of a simulated server, second by second."""
    path = tmp_path_factory.mktemp("now") / "now.db"
    scenario = load_scenario("finetuning")
    inventory = scenario.inventory()
    aggregator = Aggregator(inventory.host, Signals.load())
    with Store(path) as kept:
        kept.append(inventories=[(NOW, inventory.host, inventory.to_json())])
        for sample in samples(scenario, int(NOW) + 12 * 3600, 120):
            kept.append(aggregator.add(sample))
    return path


def test_a_store_is_told_once_in_a_pipe(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--store", str(store)]) == 0
    text = capsys.readouterr().out
    assert "at work" in text
    assert "\x1b" not in text
    assert main(["top", "--store", str(store.with_name("no.db"))]) == 1
    assert "no.db" in capsys.readouterr().err


def test_in_a_terminal_it_goes_on_until_it_is_ended(store: Path) -> None:
    keyboard, end = pty.openpty()
    command = [sys.executable, "-m", "advisor.cli", "top", "--store", str(store)]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    # A shell's background job ignores SIGINT, and so would all that it starts.
    command = ["env", "--default-signal=INT", *command]
    program = subprocess.Popen(command, stdin=end, stdout=end, stderr=end, env=env)
    os.close(end)
    seen = b""
    until = time.monotonic() + 60
    while seen.count(b"\x1b[H") < 3 and time.monotonic() < until:  # drawn anew from the top
        seen += os.read(keyboard, 65536)
    program.send_signal(signal.SIGINT)
    while program.poll() is None and time.monotonic() < until:  # a full terminal would hold it up
        if select.select([keyboard], [], [], 0.1)[0]:
            with suppress(OSError):  # EIO: it has closed its end
                os.read(keyboard, 65536)
    assert program.wait(5) == 0
    os.close(keyboard)
    assert b"\x1b[?1049h" in seen  # a screen of its own, given back at the end
    assert b"at work" in seen
