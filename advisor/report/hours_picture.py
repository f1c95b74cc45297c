"""Where the GPU-hours went, a bar a server, for mail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from advisor.report import words
from advisor.report.band import STACK
from advisor.report.language import Language
from advisor.report.pictures import GROUND, HATCHES, LIGHT, LINE, SOFT, Picture, plain
from telemetry.states import State


@dataclass(frozen=True, slots=True)
class Bar:
    """The hours of one server, or of all."""

    name: str
    hours: Mapping[State, float]


def picture(bars: Sequence[Bar], language: Language) -> Picture:
    """Shares of each server's time, the first bar on top."""
    drawn = [s for s in STACK if any(bar.hours.get(s, 0.0) > 0 for bar in bars)]

    def draw(axes: Axes) -> None:
        places = list(range(len(bars)))
        begin = [0.0] * len(bars)
        for state in drawn:
            shares = [bar.hours.get(state, 0.0) / (sum(bar.hours.values()) or 1.0) for bar in bars]
            axes.barh(
                places,
                shares,
                0.66,
                begin,
                facecolor=LIGHT[state.value],
                edgecolor=LIGHT[SOFT if state is State.UNKNOWN else GROUND],
                linewidth=0.0,
                hatch=HATCHES.get(state.value),
                label=language.text(words.STATES[state]),
            )
            begin = [b + s for b, s in zip(begin, shares, strict=True)]
        axes.set_yticks(places)
        axes.set_yticklabels([plain(bar.name) for bar in bars], parse_math=False)
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
        axes.xaxis.set_major_formatter(lambda value, _: language.share(value))
        axes.grid(visible=False)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.spines["bottom"].set_color(LIGHT[LINE])
        axes.legend(
            loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=4, frameon=False, fontsize=8.5
        )

    title = language.text("Where the GPU-hours went")
    return Picture(title, draw, width=6.4, height=0.95 + 0.3 * len(bars))
