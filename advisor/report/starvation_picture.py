"""Starvation: the GPU-hours that jobs lost in each stretch of time, by what they waited for."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from advisor.report.language import Language
from advisor.report.pictures import GROUND, LIGHT, SOFT, Picture
from advisor.report.sections.charts import Starvation
from advisor.report.time_axis import set_time
from telemetry.states import Cause

_FILLS = (
    ("starved", "////"),
    ("busy", ""),
    ("idle_held", "----"),
    ("stuck", "xxxx"),
    ("orphan_held", "||||"),
    ("idle_free", ""),
)


def picture(
    starvation: Starvation, language: Language, causes: Mapping[Cause, str], title: str, unit: str
) -> Picture:
    """`causes` are their names; `title` is the alternative, `unit` stands beside the axis."""

    def draw(axes: Axes) -> None:
        edges = starvation.columns.edges
        below = [0.0] * starvation.columns.count
        for (cause, lost), (fill, hatch) in zip(starvation.lost.items(), _FILLS, strict=False):
            top = [b + v for b, v in zip(below, lost, strict=True)]
            axes.stairs(
                top,
                edges,
                baseline=below,
                fill=True,
                facecolor=LIGHT[fill],
                edgecolor=LIGHT[GROUND],
                linewidth=0.0,
                hatch=hatch or None,
                label=causes[cause],
            )
            below = top
        axes.set_ylim(0, max(below) * 1.25 or 1.0)
        axes.set_ylabel(unit)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_formatter(lambda value, _: language.number(value))
        axes.legend(
            loc="upper right",
            ncols=3,
            frameon=False,
            fontsize=8.5,
            borderaxespad=0.1,
            labelcolor=LIGHT[SOFT],
        )
        set_time(axes, starvation.columns, language)

    return Picture(title, draw, height=1.9)
