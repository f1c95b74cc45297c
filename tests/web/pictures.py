"""`python -m tests.web.pictures FOLDER` takes the pictures of the page that docs/ shows."""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import Browser

from advisor.web.findings import Findings
from advisor.web.fleet import FleetSource
from advisor.web.local import LocalSource
from telemetry.aggregate import Aggregator
from telemetry.event import Event, Severity
from telemetry.signals import Signals
from telemetry.simulation import Simulation, history, load_scenario
from telemetry.store import Store
from tests.servers.influxdb import InfluxDB
from tests.web.browser import chromium, visit
from tests.web.serving import served
from tests.web.test_fleet import SERVERS, fill

MORNING = int(datetime(2026, 11, 24, 6, 24, tzinfo=UTC).timestamp())
"""A morning on which one server's nightly work has ended and its office work begun."""


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        store = Path(name) / "store.db"
        _morning(store)
        _server(browser, store, folder)
        influxdb = InfluxDB.launch(Path(name))
        try:
            _fleet(browser, fill(influxdb, "node-099"), folder)
        finally:
            influxdb.process.stop()
    return 0


def _morning(path: Path) -> None:
    """Two hours in 10-second windows, and a week before them."""
    scenario = load_scenario("mixed")
    begin = MORNING - 7260
    inventory = scenario.inventory()
    with Store(path) as store:
        week = [w for w in history(scenario, begin - 7 * 86_400, 7) if w.tier == 300]
        store.append(week, inventories=[(float(begin), inventory.host, inventory.to_json())])
        simulation = Simulation(scenario, begin - begin % 86_400 - 7 * 86_400)
        aggregator = Aggregator(inventory.host, Signals.load())
        for second in range(begin, MORNING):
            store.append(aggregator.add(simulation.sample(second)))
        uuid = inventory.gpus[0].uuid
        store.append(
            events=[
                Event(
                    MORNING - 3000,
                    inventory.host,
                    "alert",
                    "GPU 0: 19.3 GB are held by a process that computes nothing. Whose: ana"
                    " (pid 3663949, ipykernel). So far 11.2 GPU-hours and 0.9 kWh. Look first at:"
                    " the notebook's kernel.",
                    Severity.WARNING,
                    gpu_uuid=uuid,
                    rule="idle_held",
                    raised=True,
                    attributes={"title": "Memory is held while idle", "subject": f"gpu {uuid}"},
                )
            ]
        )


def _server(browser: Browser, store: Path, folder: Path) -> None:
    source = LocalSource([store])
    with served(source, wall=lambda: MORNING + 4.0, findings=Findings([store])) as url:
        for name, path, scheme, size in (
            ("page-server", "/?lang=en", "light", (1440, 1000)),
            ("page-dark", "/?lang=en", "dark", (1440, 1000)),
            ("page-phone", "/?lang=es", "dark", (360, 1300)),
            ("page-alerts", "/?lang=en#/alerts", "light", (1100, 420)),
            ("page-findings", "/?lang=en#/findings", "light", (1100, 900)),
        ):
            viewport = {"width": size[0], "height": size[1]}
            with visit(browser, url, path, color_scheme=scheme, viewport=viewport) as seen:
                seen.page.wait_for_timeout(800)
                if "findings" in path:
                    seen.page.locator("#finding-list .chip").first.wait_for(timeout=120_000)
                elif "alerts" not in path:
                    seen.page.locator(".bands rect").first.wait_for()
                seen.page.wait_for_timeout(1500)
                whole = name in ("page-server", "page-dark")
                seen.page.screenshot(path=folder / f"{name}.png", full_page=whole)


def _fleet(browser: Browser, source: FleetSource, folder: Path) -> None:
    with served(source) as url:
        for name, width, scheme in (("page-fleet", 1440, "light"), ("page-wide", 2560, "dark")):
            viewport = {"width": width, "height": 1000}
            with visit(browser, url, color_scheme=scheme, viewport=viewport) as seen:
                seen.page.locator(".list a").nth(SERVERS - 1).wait_for()
                seen.page.get_by_label("Group by").select_option("worst")
                seen.page.wait_for_timeout(800)
                seen.page.screenshot(path=folder / f"{name}.png")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
