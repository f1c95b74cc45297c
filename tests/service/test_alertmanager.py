"""The real Alertmanager, as Debian packages it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor.channels import channel_of
from advisor.service.alert_message import message_of
from advisor.service.config import ChannelSettings
from advisor.state import AlertRow
from telemetry.event import Event, Severity
from tests.require import need_program
from tests.servers.process import ServerProcess, answers, free_port, on_free_ports


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = need_program("prometheus-alertmanager", "prometheus-alertmanager")
    folder = tmp_path_factory.mktemp("alertmanager")
    (folder / "am.yml").write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")

    def start() -> tuple[str, ServerProcess]:
        address = f"127.0.0.1:{free_port()}"
        process = ServerProcess(
            [
                str(program),
                f"--config.file={folder}/am.yml",
                f"--storage.path={folder}/data",
                f"--web.listen-address={address}",
                "--cluster.listen-address=",
            ],
            folder,
            lambda: answers(f"http://{address}/-/ready"),
        )
        process.start()
        return f"http://{address}", process

    url, process = on_free_ports(start)
    yield url
    process.stop()


def alerts(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{url}/api/v2/alerts", timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found


def test_it_takes_an_alert_knows_it_again_and_ends_it(url: str, tmp_path: Path) -> None:
    import time

    channel = channel_of(ChannelSettings("am", "alertmanager", url=url))
    event = Event(
        time.time() - 60,
        "gpu01",
        "alert",
        "GPU 3 of gpu01 spins without working. Since then.",
        Severity.CRITICAL,
        "GPU-3",
        "gpu_stuck",
        True,
        {"title": "GPU 3 of gpu01 spins", "subject": "gpu GPU-3", "owner": "ana", "look": "logs"},
    )
    for _ in range(2):
        channel.send(message_of([AlertRow(1, 0.0, event)]))
    (found,) = alerts(url)
    assert found["labels"] == {
        "alertname": "gpu_stuck",
        "host": "gpu01",
        "severity": "critical",
        "subject": "gpu GPU-3",
        "gpu_uuid": "GPU-3",
    }
    assert found["annotations"]["owner"] == "ana"
    assert found["status"]["state"] in ("active", "unprocessed")
    over = replace(event, raised=False, time=time.time() - 1)
    channel.send(message_of([AlertRow(2, 0.0, over)]))
    assert alerts(url) == []
