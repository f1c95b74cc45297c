"""How soon one server is shown: `make verify-page` prints it."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.web.local import LocalSource
from tests.web.browser import chromium, visit
from tests.web.feeder import Feeder
from tests.web.serving import served


@pytest.mark.long
def test_one_server_is_shown_within_a_second(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path / "store.db")
    feeder.advance()
    feeder.close()
    times = []
    with chromium() as browser:
        for _ in range(3):
            with served(LocalSource([feeder.path])) as url, visit(browser, url) as seen:
                seen.page.locator(".gpus tbody tr").nth(7).wait_for()
                rows = seen.page.evaluate("performance.now() / 1000")
                seen.page.locator(".bands rect").first.wait_for()
                times.append((rows, seen.page.evaluate("performance.now() / 1000")))
    print("first view of one server: " + ", ".join(f"{a:.2f} s ({b:.2f} s)" for a, b in times))
    assert min(rows for rows, _ in times) <= 1.0
