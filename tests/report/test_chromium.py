"""The report in a real browser: no error, nothing from outside, on a desk, a phone and paper."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from pathlib import Path

import pytest

from advisor.report import html
from advisor.report.language import Language
from tests.report import staged
from tests.require import need, need_program

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--v=0",
)

# What a person would look for with the browser's own tools, in the page's frame of 360 px:
# what sticks out, what was fetched, and text whose contrast is under WCAG's 4.5 (3 for large).
_INSPECT = """
const frame = document.querySelector('iframe').contentDocument;
const view = frame.defaultView;
const told = {wide: [], faint: [], fetched: [], scripts: frame.scripts.length, images: 0};
told.fetched = view.performance.getEntriesByType('resource').map(e => e.name);
told.images = frame.images.length;
const colour = text => (text.match(/[\\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const ground = element => {
  for (let e = element; e; e = e.parentElement) {
    const c = colour(view.getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c;
  }
  return [255, 255, 255];
};
for (const e of frame.querySelectorAll('body *')) {
  const box = e.getBoundingClientRect();
  const inside = e.closest('.wide, .skip, .stack thead, .defs, .phases');
  if (!inside && box.right > 361) told.wide.push(e.tagName + '.' + e.className);
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  if (!own || e.closest('svg')) continue;
  const style = view.getComputedStyle(e);
  const [one, two] = [light(colour(style.color)), light(ground(e))].sort((a, b) => b - a);
  const ratio = (one + 0.05) / (two + 0.05);
  const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
  if (ratio < (size >= 24 || (bold && size >= 18.66) ? 3 : 4.5))
    told.faint.push(e.tagName + '.' + e.className + ' ' + ratio.toFixed(2));
}
document.body.textContent = 'TOLD' + JSON.stringify(told) + 'DLOT';
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a fleet with hostile names."""
    report = staged.report(
        staged.chatbot(), staged.training(), staged.gaps(), staged.hostile(), staged.no_gpu()
    )
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html.pages(report, Language.load("en"))["report.html"], "utf-8")
    return path


def chromium(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = need_program("chromium", "chromium")
    return subprocess.run(
        [program, *_FLAGS, f"--user-data-dir={folder / 'profile'}", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_is_quiet_fits_a_phone_and_can_be_read(page: Path, tmp_path: Path, dark: bool) -> None:
    phone = tmp_path / "phone.html"
    phone.write_text(
        "<!doctype html><title>phone</title><link rel=icon href=data:,><body>"
        f'<iframe src="{page.as_uri()}" style="width:360px;height:800px;border:0"></iframe>'
        f"<script>onload = () => {{ {_INSPECT} }}</script>",
        "utf-8",
    )
    flags = ["--force-dark-mode"] if dark else []
    run = chromium(tmp_path, "--allow-file-access-from-files", *flags, "--dump-dom", phone.as_uri())
    found = re.search(r"TOLD(.*)DLOT", run.stdout)
    assert found, run.stderr
    told = json.loads(found[1].replace("&amp;", "&").replace("&gt;", ">").replace("&lt;", "<"))
    assert told == {"wide": [], "faint": [], "fetched": [], "scripts": 0, "images": 0}
    assert "CONSOLE" not in run.stderr


def test_axe_finds_no_fault(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("axe_core_python")
    need(spec, "axe-core-python", "pip install -e '.[advisor,dev]'")
    assert spec is not None
    assert spec.origin is not None
    axe = Path(spec.origin).with_name("axe.min.js").read_text("utf-8")
    report = staged.report(staged.chatbot(), staged.training(), staged.gaps())
    page = tmp_path / "report.html"
    page.write_text(
        html.pages(report, Language.load("es"))["report.html"]
        + f"<script>{axe}</script><script>axe.run().then(found => {{"
        "document.body.textContent = 'TOLD' + found.passes.length + ' passed ' + JSON.stringify("
        "found.violations.map(v => [v.id, v.impact, v.nodes[0].html.slice(0, 200)])) + 'DLOT'"
        "})</script>",
        "utf-8",
    )
    run = chromium(tmp_path, "--virtual-time-budget=30000", "--dump-dom", page.as_uri())
    found = re.search(r"TOLD(\d+) passed (.*)DLOT", run.stdout)
    assert found, run.stderr
    assert int(found[1]) > 20
    assert found[2] == "[]"


def test_it_prints_on_a4(page: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "report.pdf"
    chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={sheet}", page.as_uri())
    content = sheet.read_bytes()
    assert content.startswith(b"%PDF")
    # A4 is 595.28 by 841.89 points; pages of another size would be cut by an office printer.
    boxes = {tuple(map(round, map(float, box.split()))) for box in _boxes(content)}
    assert boxes == {(0, 0, 595, 842)}


def _boxes(content: bytes) -> list[bytes]:
    return re.findall(rb"/MediaBox\s*\[([^\]]+)\]", content)
