"""The state bands of a server's GPUs, for mail."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from advisor.assessment import GpuTimeline, Period
from advisor.report import words
from advisor.report.band import STACK, axis, shares
from advisor.report.language import Language
from advisor.report.pictures import GROUND, HATCHES, LIGHT, LINE, SOFT, Picture
from advisor.report.time_axis import Columns, set_time
from telemetry.states import State

_TALL = 0.78


def picture(
    gpus: Mapping[int, GpuTimeline], told: Period, title: str, language: Language
) -> Picture:
    """A row a GPU by its index; in each, columns of time shared among the states."""
    columns = Columns.of(told)
    time = axis(told)
    rows = {index: shares(timeline, time) for index, timeline in gpus.items()}

    def draw(axes: Axes) -> None:
        seen: set[State] = set()
        for place, row in enumerate(rows.values()):
            below = [float(-place)] * len(row)
            for state in STACK:
                tall = [column.get(state, 0.0) * _TALL for column in row]
                if not any(tall):
                    continue
                top = [b + t for b, t in zip(below, tall, strict=True)]
                axes.stairs(
                    top,
                    columns.edges,
                    baseline=below,
                    fill=True,
                    facecolor=LIGHT[state.value],
                    edgecolor=LIGHT[SOFT if state is State.UNKNOWN else GROUND],
                    linewidth=0.0,
                    hatch=HATCHES.get(state.value),
                    label=None if state in seen else language.text(words.STATES[state]),
                )
                seen.add(state)
                below = top
        axes.set_yticks([_TALL / 2 - place for place in range(len(rows))])
        axes.set_yticklabels([language.text("GPU {n}", n=index) for index in rows])
        axes.set_ylim(_TALL - len(rows), 1)
        axes.grid(visible=False)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.spines["bottom"].set_color(LIGHT[LINE])
        axes.legend(
            loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=4, frameon=False, fontsize=8.5
        )
        set_time(axes, columns, language)

    return Picture(title, draw, width=6.4, height=0.8 + 0.24 * len(rows))
