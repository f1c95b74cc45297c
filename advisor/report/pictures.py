"""Pictures by matplotlib: SVG for pages, which follow their colours, and PNG for mail.

Imported only where a report is made: no long-lived process loads matplotlib.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK, SOFT, LINE, GROUND = "ink", "soft", "line", "card"
"""Names of colours of the page's palette, beside those of the states."""

# Okabe and Ito's colours, told apart by colour-blind people too (Color Universal Design, 2008);
# the page's palette has the same. Each is unique here, since an SVG's are put back to names.
LIGHT: Mapping[str, str] = {
    INK: "#1b2422",
    SOFT: "#56625f",
    LINE: "#dbe0dd",
    GROUND: "#ffffff",
    "busy": "#0072b2",
    "starved": "#d55e00",
    "stuck": "#a5407c",
    "orphan_held": "#5b2a6e",
    "idle_held": "#e6a817",
    "idle_free": "#c9d1ce",
    "unknown": "#f1f3f2",
}
HATCHES: Mapping[str, str] = {
    "starved": "////",
    "stuck": "xxxx",
    "orphan_held": "||||",
    "idle_held": "----",
    "unknown": "....",
}
"""So that the states are told apart without colour."""

Draw = Callable[[Axes], None]
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: small, and read aloud
    "svg.hashsalt": "talla",  # the same picture has the same bytes
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.edgecolor": LIGHT[SOFT],
    "axes.labelcolor": LIGHT[INK],
    "axes.linewidth": 0.6,
    "xtick.color": LIGHT[SOFT],
    "ytick.color": LIGHT[SOFT],
    "text.color": LIGHT[INK],
    "hatch.linewidth": 0.7,
    "hatch.color": LIGHT[GROUND],
    "grid.color": LIGHT[LINE],
    "grid.linewidth": 0.6,
    "path.simplify": True,
    "path.simplify_threshold": 0.3,
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of some inches, and who draws it; `alternative` is its text for those who cannot
    see it."""

    alternative: str
    draw: Draw
    width: float = 9.0
    height: float = 2.2

    def svg(self, prefix: str) -> str:
        """An `<svg>` element for a page; `prefix` makes its ids its own there."""
        figure = self._figure()
        FigureCanvasSVG(figure)
        out = io.StringIO()
        with rc_context(_STYLE):
            figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
        return _inline(out.getvalue(), prefix, self.alternative)

    def png(self) -> bytes:
        """The picture on white, twice as fine as it is shown."""
        figure = self._figure()
        FigureCanvasAgg(figure)
        out = io.BytesIO()
        with rc_context(_STYLE), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a letter that the font lacks is drawn as a box
            figure.savefig(out, format="png", dpi=144, facecolor=LIGHT[GROUND])
        return out.getvalue()

    def _figure(self) -> Figure:
        with rc_context(_STYLE):
            figure = Figure(figsize=(self.width, self.height), layout="constrained")
            axes = figure.add_subplot()
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
            axes.grid(axis="y")
            axes.set_axisbelow(True)
            self.draw(axes)
        return figure


def plain(text: str, longest: int = 28) -> str:
    """A name of a machine as a label: printable, and not too long."""
    text = "".join(c if c.isprintable() else "�" for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _inline(svg: str, prefix: str, alternative: str) -> str:
    """Matplotlib's document as an element of a page: ids, colours and sizes are the page's."""
    from markupsafe import escape

    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.S)
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.S)  # it would style the whole page
    used = set(re.findall(r'(?:url\(#|xlink:href="#)([^)"]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{prefix}{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(url\(#|xlink:href="#)', rf"\1{prefix}", svg)
    # Text is drawn by its style alone: the page has the fonts.
    svg = re.sub(r" ?font-family: [^;\"]*;?", "", svg)
    svg = svg.replace(' transform="rotate(-0', ' data-none="').replace("-0 ", "0 ")
    svg = re.sub(r' data-none="[^"]*"', "", svg)
    svg = re.sub(r'<path d="[^"]*" style="fill: none"/>', "", svg)
    svg = re.sub(r"(\d+\.\d)\d+", r"\1", svg)
    svg = re.sub(r' d="([^"]*)"', lambda m: f' d="{_short(m[1])}"', svg)
    for name, colour in LIGHT.items():
        svg = svg.replace(colour, f"var(--{name})")
    # A custom property is no value of an attribute.
    svg = re.sub(r' fill="(var\([^"]*\))"', r' style="fill: \1"', svg)
    svg = re.sub(r">\s+<", "><", svg)
    svg = svg.replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    svg = svg.replace("xlink:href", "href").replace(' xmlns="http://www.w3.org/2000/svg"', "")
    box = re.search(r'viewBox="[^"]+"', svg)
    assert box is not None
    head = f'<svg class="chart" {box[0]} role="img" aria-label="{escape(alternative)}">'
    return (head + svg[svg.index(">") + 1 :]).strip()


def _short(path: str) -> str:
    """The same path of straight lines with H and V where they do, which most of ours are."""
    parts = path.split()
    found: list[str] = []
    at, before = 0, ("", "")
    while at < len(parts):
        command, point = parts[at], [*parts[at + 1 : at + 3], "", ""][:2]
        if command not in ("M", "L"):  # a curve, or the end of a part
            found.append(command)
            at, before = at + 1, ("", "")
            continue
        x, y = point
        if command == "L" and y == before[1]:
            found.append(f"H{x}")
        elif command == "L" and x == before[0]:
            found.append(f"V{y}")
        else:
            found.append(f"{command}{x} {y}")
        at, before = at + 3, (x, y)
    return " ".join(found)
