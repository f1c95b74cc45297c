"""Updates sent fast: neither the page nor the server behind it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession

from advisor.web.picture import AlertNow, GpuNow, HostNow, Picture, ProcessNow
from tests.web.browser import chromium, visit
from tests.web.serving import served

GPUS = 8
STATES = ("busy", "idle_held", "starved", "idle_free")


class Racing:
    """A server whose windows pass as fast as they are asked for: ten seconds at each look."""

    kind = "store"
    every = 0.004

    def __init__(self, most: int) -> None:
        self.most = most
        self.looks = 0
        self.start = time.time() - 86_400.0

    def wall(self) -> float:
        """The clock that these windows follow."""
        return self.start + 10.0 * self.looks + 2.0

    def look(self) -> Picture:
        self.looks = min(self.most, self.looks + 1)
        n, at = self.looks, self.start + 10.0 * self.looks
        gpus = tuple(
            GpuNow(
                f"GPU-{i:08}",
                at,
                i,
                "NVIDIA H100 80GB HBM3",
                STATES[(n // 7 + i) % 4],
                state_since=at - 60,
                readings={
                    "utilization_ratio": (n * 7 + i * 11) % 100 / 100,
                    "memory_used_bytes": 1e9 * ((n + i) % 80),
                    "memory_total_bytes": 8.6e10,
                    "power_watts": 100.0 + (n * 13) % 500,
                    "pcie_rx_bytes_per_second": 1e8 * (n % 30),
                },
                # Processes come and go: each has another name.
                processes=(ProcessNow(f"job-{n}-{i}", str(n), f"user-{n % 50}", "user"),),
            )
            for i in range(GPUS)
        )
        alert = AlertNow(
            "racer", f"rule_{n % 9}", "host", at, n % 2 == 0, "warning", f"text {n}", f"title {n}"
        )
        readings = {"cpu_busy_ratio": n % 100 / 100, "memory_used_ratio": 0.4}
        return Picture((HostNow("racer", at, 10.0, gpus, readings),), (alert,))

    def series(self, host: str, since: int, until: int) -> dict[str, Any]:
        return {
            "step": 10,
            "time": [int(self.start + 10 * (self.looks - 1))],
            "gpus": [
                {
                    "uuid": f"GPU-{i:08}",
                    "index": i,
                    "columns": {"utilization_ratio": [0.5], "power_watts": [300.0]},
                    "states": [],
                }
                for i in range(GPUS)
            ],
            "host": {"cpu_busy_ratio": [0.1], "memory_used_ratio": [0.4]},
        }


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


_COUNT = """
const Real = EventSource;
window.heard = 0;
window.EventSource = class extends Real {
  constructor(...all) {
    super(...all);
    this.addEventListener('message', () => { window.heard += 1; });
  }
};
"""


def _size(session: CDPSession) -> tuple[float, float]:
    """Bytes of the page's heap, and its nodes, after garbage was collected."""
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    found = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    return found["JSHeapUsedSize"], found["Nodes"]


def race(browser: Browser, updates: int, settled: int) -> None:
    """`settled` updates fill the two hours that are shown; from then on nothing may be added."""
    racing = Racing(updates)
    with served(racing, wall=racing.wall) as url, visit(browser, url, script=_COUNT) as seen:
        page = seen.page
        page.wait_for_selector(".gpus tbody tr")
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")

        def received() -> int:
            return int(page.evaluate("window.heard"))

        _until(lambda: received() >= settled)
        bytes_before, nodes_before = _size(session)
        _until(lambda: received() >= updates)
        page.wait_for_timeout(500)
        bytes_after, nodes_after = _size(session)
        print(
            f"{received()} updates received: after {settled} a heap of"
            f" {bytes_before / 2**20:.2f} MiB and {nodes_before:.0f} nodes, at the end"
            f" {bytes_after / 2**20:.2f} MiB and {nodes_after:.0f}"
        )
        assert bytes_after < bytes_before * 1.15 + 2**20
        assert nodes_after < nodes_before * 1.1 + 200


def _until(true: Any, seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_few_hundred_updates_leave_nothing_behind(browser: Browser) -> None:
    race(browser, 950, 800)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_3600_updates_leave_nothing_behind(browser: Browser) -> None:
    race(browser, 3600, 900)
