"""What the service loads and takes, with everything at work."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from telemetry.event import Event, Severity
from telemetry.store import Store
from tests.service.servers import smtp_server, web_server

HEAVY = ("numpy", "sklearn", "matplotlib", "pandas", "scipy")
ALERTS = 400
MOST_BYTES = 110 * 2**20

_SCRIPT = """
import json, os, sys, time
from pathlib import Path
from advisor.config import load
from advisor.service import Service
service = Service(load(Path(sys.argv[1])), config=Path(sys.argv[1]))
service.start()
end = time.monotonic() + 60
names = [courier.name for courier in service.couriers]
while time.monotonic() < end:
    if all(len(service.state.told(name)) == int(sys.argv[2]) for name in names):
        break
    time.sleep(0.1)
words = open('/proc/self/status').read().split('VmHWM:')[1].split()
loaded = [name for name in %r if name in sys.modules]
print(json.dumps({"bytes": int(words[0]) * 1024, "loaded": loaded}), flush=True)
os._exit(0)
"""


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
        config = tmp_path / "advisor.toml"
        config.write_text(
            f"""
            stores = ["{tmp_path}/agent.db"]
            [service]
            state = "{tmp_path}/advisor.db"
            group_seconds = 0
            poll_seconds = 1
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
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT % (HEAVY,), str(config), str(ALERTS)],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    found = json.loads(done.stdout)
    assert found["loaded"] == []
    print(f"the service took {found['bytes'] / 2**20:.0f} MiB at most")
    assert found["bytes"] <= MOST_BYTES
    assert len(post.bodies) == 10  # forty a mail
    assert len(hook.bodies) >= 20
