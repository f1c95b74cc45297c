"""Debian's Chromium, driven by Playwright: it waits for what a person would see."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.require import need, need_program


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser; skips or fails the test where Chromium is absent."""
    program = need_program("chromium", "chromium")
    expect.set_options(timeout=30_000)  # two cores, shared with servers and daemons
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(program),
            args=["--no-sandbox", "--disable-gpu", "--js-flags=--expose-gc"],
        )
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """A page that is open, and what went wrong on it."""

    page: Page
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def clean(self) -> None:
        """Nothing was said on the console, nothing was asked of another server."""
        assert self.errors == []
        assert self.outside == []


@contextlib.contextmanager
def visit(
    browser: Browser, url: str, path: str = "/?lang=en", *, script: str = "", **options: Any
) -> Iterator[Visit]:
    """A visitor of the page at `url`, in a context of its own; clean at the end.

    `script` is run before the page's own.
    """
    context = browser.new_context(
        **{"viewport": {"width": 1440, "height": 1000}, "locale": "en-GB", **options}
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    if script:
        page.add_init_script(script)
    seen = Visit(page)
    own = urlsplit(url).netloc
    page.on("console", lambda message: _note(seen.errors, message.type, message.text))
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None
            if urlsplit(request.url).scheme in ("data", "blob")
            or urlsplit(request.url).netloc == own
            else seen.outside.append(request.url)
        ),
    )
    try:
        page.goto(url + path)
        yield seen
        seen.clean()
    finally:
        context.close()


def _note(errors: list[str], kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        errors.append(f"{kind}: {text}")


def axe(page: Page) -> list[tuple[str, str, str]]:
    """What axe-core finds wrong: rule, impact, the first element."""
    spec = importlib.util.find_spec("axe_core_python")
    need(spec, "axe-core-python", "pip install -e '.[advisor,dev]'")
    assert spec is not None
    assert spec.origin is not None
    page.evaluate(Path(spec.origin).with_name("axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run().then(f => [f.passes.length, f.violations])")
    passes, violations = found
    assert passes > 20
    return [(v["id"], v["impact"], v["nodes"][0]["html"][:200]) for v in violations]
