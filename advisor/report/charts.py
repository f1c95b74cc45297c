"""The pictures of a page as its templates call them. Matplotlib is loaded with the first one."""

from __future__ import annotations

from itertools import count

from markupsafe import Markup

from advisor.message import Amount, say
from advisor.report import words
from advisor.report.language import Language
from advisor.report.sections.charts import Demand, Starvation


class Charts:
    """Draws for one page after the other; every picture has ids of its own."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._numbers = count(1)

    def demand(self, demand: Demand) -> Markup:
        """Demand against capacity, as an SVG element."""
        from advisor.report.demand_picture import picture

        text = self._language.text
        amount = Amount(demand.capacity, demand.unit)
        unit = "count" if demand.unit == "GPUs" else demand.unit  # the axis has the unit
        peak = max((v for v in demand.highest if v is not None), default=0.0)
        told = say(
            "{what}: at most {peak} of {capacity}",
            what=demand.title,
            peak=Amount(peak, unit),
            capacity=amount,
        )
        enough = Amount(demand.enough or 0.0, unit)
        drawn = picture(
            demand,
            self._language,
            {
                "title": text(told),
                "highest": text("highest"),
                "usual": text("mean"),
                "capacity": text("there: {amount}", amount=Amount(demand.capacity, unit)),
                "enough": text("would do: {amount}", amount=enough),
            },
        )
        return self._svg(drawn.svg(self._prefix()))

    def starvation(self, starvation: Starvation) -> Markup:
        """Hours lost by cause, as an SVG element."""
        from advisor.report.starvation_picture import picture

        language = self._language
        told = ", ".join(
            f"{language.text(label)} {language.hours(hours)}" for label, hours in starvation.totals
        )
        drawn = picture(
            starvation,
            language,
            {cause: language.text(words.CAUSES[cause]) for cause in starvation.lost},
            f"{language.text('GPU-hours lost')}: {told}",
            language.text("GPU-hours lost"),
        )
        return self._svg(drawn.svg(self._prefix()))

    def _prefix(self) -> str:
        return f"c{next(self._numbers)}-"

    def _svg(self, text: str) -> Markup:
        # Drawn by matplotlib, which escapes its texts; ours is the frame.
        return Markup(text)
