"""A GPU falls off the bus: from the driver by agent, store and service to a webhook."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.staged_agent import Server, stop, until
from tests.fakenvml.staged import Scenario
from tests.service.servers import Received, web_server

SCENARIO = """
gpus=2
gpu*.name=NVIDIA H100 80GB HBM3
gpu*.util=95
gpu*.power_w=600
gpu0.proc={pid},C,18000,55
gpu0.xid=79@3
gpu0.lost_after=4
"""


@pytest.fixture
def server(fakenvml: Path, tmp_path: Path) -> Iterator[Server]:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "soon.toml").write_text('[[rule]]\nname = "gpu_lost"\nraise_seconds = 10\n')
    more = f"[alerts]\nrules = '{rules}'\n"
    server = Server(fakenvml, tmp_path, more, SCENARIO)
    # On a clock of ours: each process of the agent would else begin the scenario anew.
    (tmp_path / "stepped").mkdir()
    text = SCENARIO.format(pid=os.getpid())
    server.staged = Scenario(fakenvml, tmp_path / "stepped", text, stepped=True)
    yield server
    server.kill()
    server.staged.close()


@pytest.mark.long
def test_a_lost_gpu_reaches_a_person(server: Server, tmp_path: Path) -> None:
    config = tmp_path / "advisor.toml"
    with web_server() as received:
        config.write_text(
            f"""
            stores = ["{server.store}"]
            [service]
            state = "{tmp_path}/advisor.db"
            poll_seconds = 1
            group_seconds = 0
            [page]
            enabled = false
            [report]
            folder = "{tmp_path}/reports"
            [[channels]]
            name = "hook"
            kind = "apprise"
            url = "json://127.0.0.1:{received.port}/"
            """
        )
        agent = server.start()
        until(lambda: server.windows() > 0)
        begin = time.monotonic()

        def passed(condition: bool) -> bool:
            server.staged.at(time.monotonic() - begin)
            return condition

        service = subprocess.Popen(
            [sys.executable, "-m", "advisor.cli", "serve", "--config", str(config)]
        )
        try:
            until(lambda: passed("is lost" in told(received)))
        finally:
            service.terminate()
            assert service.wait(5) == 0
        stop(agent)
    (body,) = received.bodies  # one cause, one alert: the XID is told in it
    message = body["message"]
    assert "XID 79: the GPU has fallen off the PCIe bus." in message
    assert "GPU 0 of gpu01 is lost: it gives no reading any more." in message
    assert "The driver says: " in message
    assert "Look first at: dmesg" in message


def told(received: Received) -> str:
    return " ".join(body["message"] for body in received.bodies)
