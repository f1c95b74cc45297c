"""What if: the look-back replayed on smaller hardware, the recommended option among it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from advisor.finding import Dimension, Finding, Verdict, WhatIf
from advisor.message import Message, say
from advisor.report.report import Server
from advisor.report.section import ServerSection


@dataclass(frozen=True, slots=True)
class Line:
    """One option. `advised`: the recommendation names it. `obstacles` are why it does not do."""

    option: WhatIf
    advised: bool
    obstacles: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class WhatIfs:
    """The options that tell something, and the hardware that is there."""

    lines: tuple[Line, ...]
    count: int
    card: str


def build(server: Server) -> WhatIfs | None:
    """The options; no section where no smaller one could be replayed."""
    finding = next((f for f in server.findings if f.what_if), None)
    if finding is None:
        return None
    lines = tuple(Line(o, _advised(server, o), tuple(_why_not(o))) for o in _telling(finding))
    cards = server.assessment.inventory.gpus
    return WhatIfs(lines, len(cards), next((c.name for c in cards if c.name), ""))


def _telling(finding: Finding) -> Iterator[WhatIf]:
    """Of each card the fewest that would do, with one fewer beside it; else the most."""
    by_card: dict[str, list[WhatIf]] = {}
    for option in finding.what_if:
        by_card.setdefault(option.gpu, []).append(option)
    for options in by_card.values():
        options.sort(key=lambda o: o.count)
        place = next((i for i, o in enumerate(options) if o.fits), len(options) - 1)
        yield from options[max(0, place - 1) : place + 1]


def _advised(server: Server, option: WhatIf) -> bool:
    dimension = Dimension.GPU_COUNT if option.rule is None else Dimension.GPU_CLASS
    finding = next((f for f in server.findings if f.dimension is dimension), None)
    if finding is None or finding.verdict is not Verdict.OVER or finding.recommendation is None:
        return False
    values = finding.recommendation.values
    return option.count in (values.get("enough"), values.get("count")) and (
        values.get("card") == option.gpu
    )


def _why_not(option: WhatIf) -> Sequence[Message]:
    if option.fits:
        return ()
    found = list(option.obstacles)
    if option.served_ratio < 1 or option.queued_seconds > 0:
        found.append(say("it would not have kept up with the work"))
    elif not found:
        found.append(say("its headroom at the peak is too small"))
    return found


SECTION = ServerSection("whatif", 25, say("What if: the same work on less"), build)
