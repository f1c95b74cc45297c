"""A running agent and a running service, as processes: the page follows, and tells its cost."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from telemetry.store import Store
from tests.agent.command import started
from tests.agent.staged_agent import Server
from tests.servers.process import answers, free_port
from tests.web.browser import chromium, visit

_MOST_RSS_MIB = 110
_LONG = 90_000
"""Milliseconds: a window of ten seconds, on a machine that has other work."""
_NEWEST = "Number(document.querySelector('.plot').dataset.newest)"


@dataclass
class Running:
    """The service over a store, and the agent that writes it."""

    folder: Path
    service: subprocess.Popen[bytes]
    url: str
    agent: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return (self.folder / "service.log").read_text()

    def start_agent(self) -> None:
        self.agent = started(
            "run", "--simulate", "training", "--store", self.folder / "store.db",
            log=self.folder / "agent.log",
        )  # fmt: skip

    def stop_agent(self) -> None:
        assert self.agent is not None
        self.agent.send_signal(signal.SIGTERM)
        self.agent.wait(60)

    def rss_mib(self) -> float:
        status = Path(f"/proc/{self.service.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found
        return int(found[1]) / 1024


@contextlib.contextmanager
def serving(folder: Path, store: Path) -> Iterator[Running]:
    """The service over a store, on a free port."""
    port = free_port()
    if not store.exists():
        Store(store).close()
    config = folder / "advisor.toml"
    config.write_text(
        f'stores = ["{store}"]\n[service]\nstate = "{folder / "advisor.db"}"\n'
        f'[report]\nenabled = false\nfolder = "{folder / "reports"}"\n'
        f"[page]\nport = {port}\n"
    )
    with (folder / "service.log").open("wb") as log:
        service = subprocess.Popen(
            [sys.executable, "-m", "advisor.cli", "serve", "--config", str(config)],
            stdout=log,
            stderr=log,
        )
    running = Running(folder, service, f"http://127.0.0.1:{port}")
    deadline = time.monotonic() + 90
    while not answers(running.url) and time.monotonic() < deadline:
        time.sleep(0.1)
    try:
        yield running
    finally:
        for process in (running.agent, running.service):
            if process is not None:
                process.kill()
                process.wait()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path, tmp_path / "store.db") as found:
        found.start_agent()
        yield found


def stop_and_restart(running: Running, stale: bool) -> None:
    with chromium() as browser, visit(browser, running.url) as seen:
        page = seen.page
        row = page.locator(".gpus tbody tr").first
        row.wait_for(timeout=_LONG)
        expect(row).to_contain_text("H100")
        page.wait_for_selector(".bands rect", timeout=_LONG)
        # It moves: later windows are drawn. (Their figures, rounded, may well be the same.)
        page.wait_for_function(f"() => {_NEWEST} > 0", timeout=_LONG)
        drawn = page.evaluate(_NEWEST)
        page.wait_for_function(f"then => {_NEWEST} > then", arg=drawn, timeout=_LONG)
        expect(page.locator("#cost")).to_contain_text("of one core")
        running.stop_agent()
        if stale:
            expect(page.locator("#age")).to_contain_text(
                re.compile(r"Data [12][0-9]\Ws old"), timeout=_LONG
            )
            expect(page.locator("#banner")).to_contain_text("Is the agent running?", timeout=_LONG)
        running.start_agent()
        expect(page.locator("#age")).to_contain_text(
            re.compile(r"Data [0-9]\Ws old"), timeout=_LONG
        )
        expect(page.locator("#banner")).to_be_hidden()
    with urllib.request.urlopen(f"{running.url}/api/now") as answer:
        cost = json.load(answer)["look_cpu_seconds"]
    print(f"service: {running.rss_mib():.1f} MiB at most, a look {1000 * cost:.1f} ms of one core")
    assert running.rss_mib() <= _MOST_RSS_MIB
    assert "Traceback" not in running.log
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{running.url}/reports/../advisor.db")
    assert refused.value.code == 404
    refused.value.close()
    running.service.send_signal(signal.SIGTERM)
    assert running.service.wait(10) == 0


@pytest.mark.timeout(400)
def test_the_page_follows_a_running_agent(running: Running) -> None:
    stop_and_restart(running, stale=False)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_stopped_agent_is_told(running: Running) -> None:
    stop_and_restart(running, stale=True)


GPUS = """
gpus=4
gpu*.name=NVIDIA H100 80GB HBM3
gpu*.util=90
gpu*.mem_used_mib=40000
gpu*.power_w=500
gpu2.lost=100-200
"""


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_gpu_falls_off_the_bus_and_returns(fakenvml: Path, tmp_path: Path) -> None:
    """The driver says GPU_IS_LOST to the running agent, and later finds the GPU again."""
    server = Server(fakenvml, tmp_path, scenario=GPUS, stepped=True)
    server.start()
    try:
        with (
            serving(tmp_path, server.store) as running,
            chromium() as browser,
            visit(browser, running.url) as seen,
        ):
            rows = seen.page.locator(".gpus tbody tr")
            rows.first.wait_for(timeout=_LONG)
            expect(rows).to_have_count(4)
            expect(rows.nth(2)).to_contain_text("500", timeout=_LONG)
            server.staged.at(150)
            expect(rows.nth(2)).to_contain_text("gives no reading", timeout=_LONG)
            expect(rows.nth(2)).to_contain_text("lost")
            expect(rows).to_have_count(4)
            expect(rows.nth(3)).not_to_contain_text("gives no reading")
            server.staged.at(250)
            expect(rows.nth(2)).not_to_contain_text("gives no reading", timeout=_LONG)
            expect(rows.nth(2)).to_contain_text("500")
            assert [e.kind for e in server.events() if e.kind.startswith("gpu_")][:2] == [
                "gpu_lost",
                "gpu_returned",
            ]
    finally:
        server.kill()
        server.staged.close()


def test_a_taken_port_and_a_missing_token_are_told(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    Store(store).close()
    config = tmp_path / "advisor.toml"
    config.write_text(
        f'stores = ["{store}"]\n[service]\nstate = "{tmp_path / "advisor.db"}"\n'
        '[page]\naddress = "0.0.0.0"\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "advisor.cli", "serve", "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 78
    assert "token_file" in done.stderr
    assert "Traceback" not in done.stderr
