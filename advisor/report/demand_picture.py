"""Demand against capacity: how much of the GPUs and of their memory was at work, over time."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from advisor.message import Amount
from advisor.report.language import Language
from advisor.report.pictures import INK, LIGHT, LINE, SOFT, Picture
from advisor.report.sections.charts import Demand
from advisor.report.time_axis import set_time


def picture(demand: Demand, language: Language, words: Mapping[str, str]) -> Picture:
    """`words` has "highest", "usual", "capacity", "enough", and "title" as its alternative."""
    scale, unit = _scale(demand)

    def draw(axes: Axes) -> None:
        times = demand.columns.edges
        highest = [None if v is None else v / scale for v in demand.highest]
        usual = [None if v is None else v / scale for v in demand.usual]
        nan = float("nan")
        axes.stairs(
            [nan if v is None else v for v in highest],
            times,
            fill=True,
            color=LIGHT["idle_free"],
            label=words["highest"],
        )
        axes.stairs(
            [nan if v is None else v for v in usual],
            times,
            fill=True,
            color=LIGHT["busy"],
            label=words["usual"],
        )
        top = demand.capacity / scale
        axes.axhline(top, color=LIGHT[INK], linewidth=1.4)
        axes.annotate(
            words["capacity"],
            (times[0], top),
            xytext=(3, 3),
            textcoords="offset points",
            color=LIGHT[INK],
        )
        if demand.enough is not None:
            axes.axhline(
                demand.enough / scale,
                color=LIGHT["starved"],
                linewidth=1.4,
                linestyle=(0, (5, 2)),
                label=words["enough"],
            )
        axes.set_ylim(0, max(top, *(v for v in (*highest, 0.0) if v is not None)) * 1.16)
        axes.set_ylabel(unit)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=scale == 1.0))
        axes.yaxis.set_major_formatter(lambda value, _: language.number(value))
        axes.legend(
            loc="upper right",
            ncols=3,
            frameon=False,
            fontsize=8.5,
            borderaxespad=0.1,
            labelcolor=LIGHT[SOFT],
        )
        axes.grid(color=LIGHT[LINE])
        set_time(axes, demand.columns, language)

    return Picture(words["title"], draw)


def _scale(demand: Demand) -> tuple[float, str]:
    if demand.unit != "bytes":
        return 1.0, demand.unit
    text = str(Amount(demand.capacity, "bytes")).split(" ")[1]
    return {"TB": 1e12, "GB": 1e9, "MB": 1e6}.get(text, 1.0), text
