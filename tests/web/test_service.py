"""A running agent and a running service, as processes: the page follows, and tells its cost."""

from __future__ import annotations

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
from tests.servers.process import answers, free_port
from tests.web.browser import chromium, visit

_MOST_RSS_MIB = 110


@dataclass
class Running:
    """An agent on a simulated server, and the service over its store."""

    folder: Path
    agent: subprocess.Popen[bytes]
    service: subprocess.Popen[bytes]
    url: str

    @property
    def log(self) -> str:
        return (self.folder / "service.log").read_text()

    def start_agent(self) -> None:
        self.agent = started(
            "run", "--simulate", "training", "--store", self.folder / "store.db",
            log=self.folder / "agent.log",
        )  # fmt: skip

    def rss_mib(self) -> float:
        status = Path(f"/proc/{self.service.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found
        return int(found[1]) / 1024


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    store, port = tmp_path / "store.db", free_port()
    Store(store).close()
    config = tmp_path / "advisor.toml"
    config.write_text(
        f'stores = ["{store}"]\n[service]\nstate = "{tmp_path / "advisor.db"}"\n'
        f'[report]\nenabled = false\nfolder = "{tmp_path / "reports"}"\n'
        f"[page]\nport = {port}\n"
    )
    with (tmp_path / "service.log").open("wb") as log:
        service = subprocess.Popen(
            [sys.executable, "-m", "advisor.cli", "serve", "--config", str(config)],
            stdout=log,
            stderr=log,
        )
    running = Running(tmp_path, service, service, f"http://127.0.0.1:{port}")
    running.start_agent()
    deadline = time.monotonic() + 30
    while not answers(running.url) and time.monotonic() < deadline:
        time.sleep(0.1)
    yield running
    for process in (running.agent, running.service):
        process.kill()
        process.wait()


def stop_and_restart(running: Running, stale: bool) -> None:
    with chromium() as browser, visit(browser, running.url) as seen:
        page = seen.page
        row = page.locator(".gpus tbody tr").first
        row.wait_for(timeout=40_000)
        expect(row).to_contain_text("H100")
        # It moves: the age falls back each time that a window arrives.
        page.wait_for_selector(".bands rect", timeout=40_000)
        words = page.locator(".plot").first.get_attribute("aria-label")
        assert words
        expect(page.locator(".plot").first).not_to_have_attribute(
            "aria-label", words, timeout=30_000
        )
        expect(page.locator("#cost")).to_contain_text("of one core")
        running.agent.send_signal(signal.SIGTERM)
        running.agent.wait(20)
        if stale:
            expect(page.locator("#age")).to_contain_text(
                re.compile(r"Data [12][0-9]\Ws old"), timeout=60_000
            )
            expect(page.locator("#banner")).to_contain_text("Is the agent running?", timeout=60_000)
        running.start_agent()
        expect(page.locator("#age")).to_contain_text(
            re.compile(r"Data [0-9]\Ws old"), timeout=60_000
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


@pytest.mark.long
def test_the_page_follows_a_running_agent(running: Running) -> None:
    stop_and_restart(running, stale=False)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_stopped_agent_is_told(running: Running) -> None:
    stop_and_restart(running, stale=True)


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
