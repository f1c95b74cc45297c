"""The page in a real browser, over real stores: one server, its charts, and what may go wrong."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from advisor.web.findings import Findings
from advisor.web.local import LocalSource
from telemetry.event import Event, Severity
from telemetry.store import Store
from telemetry.window import Sample
from tests.web.browser import axe, chromium, visit
from tests.web.feeder import HOSTILE, Feeder
from tests.web.serving import served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two hours that ends a minute ago, with alerts."""
    path = tmp_path_factory.mktemp("store") / "store.db"
    feeder = Feeder(path)
    feeder.advance(time.time() - 60)
    gpu = feeder.scenario.server.gpus[0].uuid
    raised = Event(
        time.time() - 900,
        feeder.host,
        "alert",
        "GPU 0: memory is held while idle. Since 10:00.",
        Severity.WARNING,
        gpu_uuid=gpu,
        rule="idle_held",
        raised=True,
        attributes={"title": "Memory is held while idle", "subject": f"gpu {gpu}"},
    )
    feeder.events([raised])
    feeder.close()
    return path


@pytest.fixture
def store(full: Path, tmp_path: Path) -> Path:
    """A copy of the store, for a test to write on."""
    return Path(shutil.copy(full, tmp_path / "store.db"))


def quick(*paths: Path) -> LocalSource:
    source = LocalSource(paths)
    source.every = 0.2
    return source


class Writer(Feeder):
    """Goes on where a copied store ends."""

    def __init__(self, path: Path) -> None:
        donor = path.with_name("donor.db")
        super().__init__(donor, hours=0.25)
        self.store.close()
        donor.unlink()
        self.path, self.store = path, Store(path)
        span = self.store.span(self.host, 10)
        assert span is not None
        self.at = span[1]


def drawn(page: Page, chart: int = 0) -> int:
    """How many pixels of a chart are coloured."""
    return int(
        page.evaluate(
            """i => {
              const canvas = document.querySelectorAll('.plot canvas')[i];
              const [w, h] = [canvas.width, canvas.height];
              const data = canvas.getContext('2d').getImageData(0, 0, w, h).data;
              let n = 0;
              for (let p = 0; p < data.length; p += 4)
                if (data[p + 3] > 100 && Math.max(data[p], data[p + 1], data[p + 2])
                    - Math.min(data[p], data[p + 1], data[p + 2]) > 60) n++;
              return n;
            }""",
            chart,
        )
    )


def shown(page: Page) -> str:
    return page.locator(".controls p").inner_text()


def test_one_server_is_shown_at_once_with_its_charts(browser: Browser, full: Path) -> None:
    with served(quick(full)) as url, visit(browser, url) as seen:
        page = seen.page
        expect(page.locator(".gpus tbody tr")).to_have_count(8)
        expect(page.locator("#overview")).to_be_hidden()
        expect(page.locator("#server .sums")).to_contain_text("held idle1", use_inner_text=False)
        row = page.locator(".gpus tbody tr").first
        expect(row).to_contain_text("GPU 0")
        expect(row).to_contain_text("held idle")
        expect(row).to_contain_text("ana")
        expect(row).to_contain_text("of 85.9 GB")
        # The engine needs its weights and the used part of its cache, less than it reserved.
        engine = page.locator(".gpus tbody tr", has_text="assistant.service")
        expect(engine).to_have_count(2)
        expect(engine.first).to_contain_text(re.compile(r"needs [78]\.\d+\WGB"))
        expect(engine.first).to_contain_text(re.compile(r"77\.\d\WGB of"))
        page.wait_for_function("() => document.querySelectorAll('.bands rect').length >= 8")
        assert page.locator("figure").count() == 6
        for chart in range(6):
            assert drawn(page, chart) > 100, page.locator("figcaption").nth(chart).inner_text()
        words = page.locator(".plot").first.get_attribute("aria-label") or ""
        assert re.search(r"GPU activity: GPU 0 .* to .*, mean", words)


def test_charts_move_with_new_windows(browser: Browser, store: Path) -> None:
    with served(quick(store)) as url, visit(browser, url) as seen:
        page = seen.page
        page.wait_for_selector(".bands rect")
        points = "document.querySelector('.plot').getAttribute('aria-label')"
        before = page.evaluate(points)
        hot = Writer(store)
        hot.change = _busy
        hot.advance(seconds=40)
        hot.close()
        page.wait_for_function(f"before => {points} !== before", arg=before)
        expect(page.locator(".gpus tbody tr").nth(6)).to_contain_text("at work")


def _busy(sample: Sample) -> None:
    for key, row in sample.rows.items():
        if key[0] == "gpu":
            row.update(utilization_ratio=0.97, power_watts=390.0)


def test_zoom_pan_and_follow(browser: Browser, full: Path) -> None:
    with served(quick(full)) as url, visit(browser, url) as seen:
        page = seen.page
        page.wait_for_selector(".bands rect")
        expect(page.get_by_role("button", name="Follow now")).to_have_attribute(
            "aria-pressed", "true"
        )
        live = shown(page)
        # By the mouse: a stretch is chosen on the chart.
        page.locator(".plot").first.scroll_into_view_if_needed()
        box = page.locator(".plot .u-over").first.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 60, steps=4)
        page.mouse.up()
        page.wait_for_function(
            "s => document.querySelector('.controls p').innerText !== s", arg=live
        )
        zoomed = shown(page)
        expect(page.get_by_role("button", name="Follow now")).to_have_attribute(
            "aria-pressed", "false"
        )
        # By the keyboard, on the chart.
        page.locator(".plot").first.focus()
        page.keyboard.press("ArrowLeft")
        page.wait_for_function(
            "s => document.querySelector('.controls p').innerText !== s", arg=zoomed
        )
        page.keyboard.press("Home")
        expect(page.get_by_role("button", name="Follow now")).to_have_attribute(
            "aria-pressed", "true"
        )
        # By buttons: a longer time is told in 5-minute windows.
        with page.expect_response(lambda r: _span(r.url) > 80_000) as told:
            page.get_by_role("button", name="24 h").click()
        assert told.value.json()["step"] == 300
        with page.expect_response(lambda r: 0 < _span(r.url) < 1000) as told:
            page.get_by_role("button", name="15 min").click()
        assert told.value.json()["step"] == 10
        # A line is hidden, and told by more than its colour.
        button = page.locator(".legend button").first
        button.click()
        expect(button).to_have_attribute("aria-pressed", "false")


def _span(url: str) -> int:
    """Seconds that a request for a course asks for; 0 for other requests."""
    asked = parse_qs(urlsplit(url).query)
    return int(asked["until"][0]) - int(asked["since"][0]) if "since" in asked else 0


def test_a_gpu_that_vanishes_is_told_and_comes_back(browser: Browser, store: Path) -> None:
    writer = Writer(store)
    lost = writer.scenario.server.gpus[2].uuid
    with served(quick(store)) as url, visit(browser, url) as seen:
        page = seen.page
        row = page.locator(".gpus tbody tr").nth(2)
        expect(row).not_to_contain_text("gives no reading")
        writer.change = lambda sample: _drop(sample, lost)
        writer.advance(seconds=30)
        expect(row).to_contain_text("gives no reading")
        expect(row).to_contain_text("old")
        expect(page.locator(".gpus tbody tr")).to_have_count(8)
        expect(page.locator(".gpus tbody tr").nth(3)).not_to_contain_text("gives no reading")
        writer.change = None
        writer.advance(seconds=20)
        expect(row).not_to_contain_text("gives no reading")
    writer.close()


def _drop(sample: Sample, uuid: str) -> None:
    for key in [key for key in sample.rows if key[1:2] == (uuid,)]:
        del sample.rows[key]


def test_the_age_of_data_is_told_and_a_restarted_agent_is_followed(
    browser: Browser, store: Path
) -> None:
    with served(quick(store)) as url, visit(browser, url) as seen:
        page = seen.page
        expect(page.locator("#banner")).to_contain_text("Is the agent running?")
        expect(page.locator("#age")).to_contain_text(re.compile(r"Data \d+\D+old"))
        writer = Writer(store)  # an agent starts again
        writer.advance()
        expect(page.locator("#banner")).to_be_hidden()
        writer.close()
        fresh = page.locator("#age").inner_text()
        expect(page.locator("#age")).not_to_have_text(fresh)
        expect(page.locator("#age")).to_contain_text(re.compile(r"Data \d+\Ws old"))
        # The store goes, as when a new one is begun, and comes back.
        store.rename(store.with_name("aside"))
        expect(page.locator("#banner")).to_contain_text("cannot be read")
        expect(page.locator(".gpus tbody tr")).to_have_count(8)
        store.with_name("aside").rename(store)
        expect(page.locator("#banner")).to_be_hidden()


def test_charts_return_by_themselves_after_an_error(browser: Browser, store: Path) -> None:
    writer = Writer(store)
    with served(quick(store)) as url, visit(browser, url) as seen:
        page = seen.page
        page.wait_for_selector(".bands rect")
        page.route("**/api/course?*", lambda route: route.fulfill(status=503, body="no store"))
        page.get_by_role("button", name="1 h", exact=True).click()
        expect(page.locator(".controls p")).to_contain_text("no store")
        seen.errors.clear()  # the browser tells of the 503
        page.unroute("**/api/course?*")
        writer.advance(seconds=20)
        expect(page.locator(".controls p")).not_to_contain_text("no store")
        page.wait_for_selector(".bands rect")
    writer.close()


def test_a_damaged_store_is_told_and_a_sound_one_followed(browser: Browser, store: Path) -> None:
    with served(quick(store)) as url, visit(browser, url) as seen:
        page = seen.page
        expect(page.locator(".gpus tbody tr")).to_have_count(8)
        sound = store.read_bytes()
        for damage in (b"no database " * 700, sound[: len(sound) // 2], b""):
            store.write_bytes(damage)
            expect(page.locator("#banner")).to_contain_text("store")
            expect(page.locator(".gpus tbody tr")).to_have_count(8)
            store.write_bytes(sound)
            expect(page.locator("#banner")).not_to_contain_text("store.db")
        # Charts asked for meanwhile are answered 503, which the browser itself notes.
        seen.errors[:] = [error for error in seen.errors if "status of 503" not in error]


def test_a_lost_service_is_told(browser: Browser, full: Path) -> None:
    with served(quick(full)) as url:
        context = browser.new_context()
        page = context.new_page()
        page.goto(url + "/?lang=en")
        page.wait_for_selector(".gpus tbody tr")
    expect(page.locator("#banner")).to_contain_text("lost its server", timeout=20_000)
    expect(page.locator(".gpus tbody tr")).to_have_count(8)
    context.close()


def test_hostile_names_stay_text(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.db"
    feeder = Feeder(path, hours=0.2, host=HOSTILE)

    def poison(sample: Sample) -> None:
        for key in sample.rows:
            if key[0] == "gpu_process":
                for name in ("name", "owner", "user", "command", "model", "pid"):
                    sample.texts.setdefault(key, {})[name] = HOSTILE
            elif key[0] == "gpu":
                sample.texts.setdefault(key, {})["error"] = HOSTILE

    feeder.change = poison
    feeder.advance()
    feeder.events(
        [
            Event(time.time(), HOSTILE, "alert", HOSTILE, rule=HOSTILE, raised=True,
                  attributes={"title": HOSTILE, "subject": HOSTILE, "owner": HOSTILE})
        ]
    )  # fmt: skip
    feeder.close()
    with served(quick(path)) as url, visit(browser, url) as seen:
        page = seen.page
        page.on("dialog", lambda dialog: seen.errors.append(f"dialog {dialog.message}"))
        expect(page.locator("#server h2")).to_have_text(HOSTILE)
        expect(page.locator(".gpus tbody tr").first).to_contain_text("<img src=x")
        page.wait_for_selector(".bands rect")
        page.goto(url + "/?lang=en#/alerts")
        expect(page.locator("#alert-list strong")).to_have_text(HOSTILE)
        page.locator("#alert-list a").click()
        expect(page.locator("#server h2")).to_have_text(HOSTILE)
        assert page.locator("img, main script, iframe").count() == 0


@pytest.mark.parametrize(("lang", "scheme"), [("en", "light"), ("es", "dark")])
def test_axe_finds_no_fault(browser: Browser, full: Path, lang: str, scheme: str) -> None:
    with (
        served(quick(full), findings=Findings([full])) as url,
        visit(browser, url, f"/?lang={lang}", color_scheme=scheme) as seen,
    ):
        page = seen.page
        page.wait_for_selector(".bands rect")
        assert axe(page) == []
        assert page.locator("html").get_attribute("lang") == lang
        for view in ("alerts", "reports", "findings"):
            page.goto(f"{url}/?lang={lang}#/{view}")
            page.wait_for_selector(f"#{view} .card > :not([role=status])", timeout=60_000)
            assert axe(page) == [], view


def test_it_fits_a_phone_and_a_wide_screen(browser: Browser, full: Path) -> None:
    with (
        served(quick(full)) as url,
        visit(browser, url, viewport={"width": 360, "height": 800}) as seen,
    ):
        page = seen.page
        page.wait_for_selector(".bands rect")
        for scheme, ground in (("light", "rgb(246, 247, 245)"), ("dark", "rgb(17, 23, 22)")):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            expect(page.locator("body")).to_have_css("background-color", ground)
            for width in (360, 768, 2560):
                page.set_viewport_size({"width": width, "height": 800})
                page.wait_for_timeout(200)
                assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_everything_is_reached_by_the_keyboard(browser: Browser, full: Path) -> None:
    with served(quick(full)) as url, visit(browser, url) as seen:
        page = seen.page
        page.wait_for_selector(".bands rect")
        reached = []
        for _ in range(40):
            page.keyboard.press("Tab")
            told = page.evaluate(
                "[document.activeElement.tagName, document.activeElement.className,"
                " (document.activeElement.getAttribute('aria-label')"
                " ?? document.activeElement.innerText).slice(0, 20)]"
            )
            if told[0] == "BODY":
                break
            reached.append(told)
        names = [name.replace("\u00a0", " ") for _, _, name in reached]
        assert names[0] == "Skip to the content"
        for name in ("Now", "Findings", "Reports", "ES", "15 min", "Earlier", "Closer", "GPU 0"):
            assert name in names, names
        assert sum(kind == "plot" for _, kind, _ in reached) == 6
        page.keyboard.press("Shift+Tab")


def test_spanish_speaks_spanish(browser: Browser, full: Path) -> None:
    options = {"locale": "es-ES"}
    with served(quick(full)) as url, visit(browser, url, "/", **options) as seen:
        page = seen.page
        expect(page.locator(".gpus tbody tr").first).to_contain_text("85,9 GB")
        expect(page.locator("nav")).to_contain_text("Conclusiones")
        assert page.locator("html").get_attribute("lang") == "es"
        page.get_by_role("link", name="EN", exact=True).click()
        expect(page.locator("nav")).to_contain_text("Findings")
