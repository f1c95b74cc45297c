"""What the service loads and takes as a process, with channels and page at work."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from advisor.state import State
from telemetry.event import Event, Severity
from telemetry.store import Store
from tests.agent.staged_agent import until
from tests.servers.process import free_port
from tests.service.servers import smtp_server, web_server

HEAVY = ("numpy", "sklearn", "scikit_learn", "matplotlib", "pandas", "scipy")
ALERTS = 400
MOST_BYTES = 110 * 2**20


def test_it_stays_small_and_loads_nothing_heavy(tmp_path: Path) -> None:
    with web_server() as hook, smtp_server() as post, Store(tmp_path / "agent.db") as store:
        for n in range(ALERTS):
            attributes = {"subject": f"gpu GPU-{n}", "title": f"alert {n}"}
            store.append(
                events=[
                    Event(
                        time.time(),
                        "gpu01",
                        "alert",
                        "text " * 50,
                        Severity.WARNING,
                        f"GPU-{n}",
                        "gpu_stuck",
                        True,
                        attributes,
                    )
                ]
            )
        port = free_port()
        config = tmp_path / "advisor.toml"
        config.write_text(
            f"""
            stores = ["{tmp_path}/agent.db"]
            [service]
            state = "{tmp_path}/advisor.db"
            group_seconds = 0
            poll_seconds = 1
            [page]
            port = {port}
            [report]
            folder = "{tmp_path}/reports"
            [[channels]]
            name = "hook"
            kind = "apprise"
            url = "json://127.0.0.1:{hook.port}/"
            [[channels]]
            name = "mail"
            kind = "mail"
            url = "smtp://127.0.0.1:{post.port}"
            sender = "talla@example.org"
            to = ["oncall@example.org"]
            [[channels]]
            name = "am"
            kind = "alertmanager"
            url = "http://127.0.0.1:{hook.port}"
            """
        )
        service = subprocess.Popen(
            [sys.executable, "-m", "advisor.cli", "serve", "--config", str(config)]
        )
        try:
            until((tmp_path / "advisor.db").exists)
            with State(tmp_path / "advisor.db") as state:
                names = ("hook", "mail", "am")
                until(lambda: all(len(state.told(name)) == ALERTS for name in names))
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
                assert answer.status == 200
            status = Path(f"/proc/{service.pid}/status").read_text()
            mapped = Path(f"/proc/{service.pid}/maps").read_text()
        finally:
            service.terminate()
            assert service.wait(10) == 0
    most = int(status.split("VmHWM:")[1].split()[0]) * 1024
    print(f"the service took {most / 2**20:.0f} MiB at most")
    assert most <= MOST_BYTES
    assert [name for name in HEAVY if f"/{name}" in mapped] == []
    assert len(post.bodies) == 10  # forty a mail
    assert len(hook.bodies) >= 20
