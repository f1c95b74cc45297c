"""The service killed at any moment of a month: no alert lost, no report missed or doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from telemetry.event import Event, Severity
from telemetry.store import Store
from tests.service.month import MONTH_SECONDS, START
from tests.service.servers import web_server

ALERTS = 120


def _killed(folder: Path, *, kills: int, step: float, seed: int) -> None:
    random_ = random.Random(seed)
    times = sorted(random_.uniform(0, MONTH_SECONDS - 4 * step) for _ in range(ALERTS))
    clock = folder / "time"
    written: list[str] = []
    at_most_after = MONTH_SECONDS / (kills + 1)
    with web_server() as received, Store(folder / "agent.db") as store:

        def write(now: float) -> None:
            """What the agent would have written by now: raised and cleared in turn."""
            while len(written) < ALERTS and START + times[len(written)] <= now:
                n = len(written)
                text = f"alert {n:03}."
                attributes = {"subject": f"gpu GPU-{n // 2}", "title": text}
                raised = n % 2 == 0
                store.append(
                    events=[
                        Event(
                            START + times[n],
                            "gpu01",
                            "alert",
                            text,
                            Severity.WARNING,
                            f"GPU-{n // 2}",
                            "gpu_stuck",
                            raised,
                            attributes,
                        )
                    ]
                )
                written.append(text)

        command = [sys.executable, "-m", "tests.service.month"]
        command += [str(folder), str(received.port), str(step)]
        done = 0
        now = START
        while True:
            process = subprocess.Popen(command)
            # Killed somewhere within its part of the month, wherever it is then.
            until = START + at_most_after * (done + random_.uniform(0.3, 1.0))
            while process.poll() is None:
                now = float(clock.read_text()) if clock.exists() else now
                write(now)
                if done < kills and now >= until:
                    time.sleep(random_.uniform(0, 0.01))
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    done += 1
                    break
                time.sleep(0.001)
            else:
                assert process.returncode == 0
                break
        assert done == kills
        # What was written at the very end is taken by one more life.
        subprocess.run([*command, "--more", "3"], check=True)
    bodies = [body["message"] for body in received.bodies if "report" not in body["title"]]
    arrived = [line for text in bodies for line in text.splitlines() if line.startswith("alert ")]
    assert len(written) == ALERTS
    first = list(dict.fromkeys(arrived))
    # In order, each at least once; one that is repeated was sent just before a kill.
    assert first == written
    assert len(arrived) - len(first) <= kills
    reports = sorted(p.name for p in (folder / "reports").iterdir() if not p.name.startswith("."))
    assert reports == ["2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23"]
    told = [body["title"] for body in received.bodies if "report" in body["title"]]
    assert set(told) == {f"Talla: right-sizing report of {name}" for name in reports}
    print(
        f"{kills} kills, {len(arrived)} of {ALERTS} alerts arrived,"
        f" {len(arrived) - len(first)} twice; reports {reports}, told {len(told)} times"
    )


def test_a_month_with_a_few_kills(tmp_path: Path) -> None:
    _killed(tmp_path, kills=3, step=14_400.0, seed=1)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_month_with_fifty_kills(tmp_path: Path) -> None:
    _killed(tmp_path, kills=50, step=900.0, seed=int(os.environ.get("TALLA_SEED", "7")))
