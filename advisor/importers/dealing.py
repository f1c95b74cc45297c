"""Rows that do not say which GPU they are of: nvidia-smi writes one a GPU, in order, each poll."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

_MOST_GPUS = 16


class Ambiguous(Exception):
    """The rows do not tell how many GPUs there are."""


def deal(times: Sequence[float], told: int | None) -> tuple[int, list[int | None]]:
    """The number of GPUs, and for each row its GPU's place in the poll.

    `times` are those of the rows in the order of the file. A row is None where its poll is not
    whole, so that its GPU cannot be told. Raises Ambiguous where `told` is None and is needed.
    """
    polls = _polls(times, 0.0)
    sizes = Counter(len(p) for p in polls)
    usual, times_seen = sizes.most_common(1)[0]
    if told is None:
        if usual > _MOST_GPUS or times_seen < 0.9 * len(polls):
            raise Ambiguous
        if usual == 1 and _uneven([p[0] for p in polls], times):
            raise Ambiguous
        told = usual
    elif usual != told and sizes[told] < 0.5 * len(polls):
        # The rows of one poll carry times that differ by milliseconds.
        polls = _polls(times, _reach(times, told))
    places: list[int | None] = [None] * len(times)
    for poll in polls:
        if len(poll) == told:
            for place, row in enumerate(poll):
                places[row] = place
    return told, places


def _polls(times: Sequence[float], reach: float) -> list[list[int]]:
    polls: list[list[int]] = []
    for row, time in enumerate(times):
        if polls and 0 <= time - times[polls[-1][0]] <= reach:
            polls[-1].append(row)
        else:
            polls.append([row])
    return polls


def _reach(times: Sequence[float], count: int) -> float:
    """Half of the usual time between a row and that `count` rows on."""
    steps = sorted(b - a for a, b in zip(times, times[count:], strict=False))
    return steps[len(steps) // 2] / 2 if steps else 0.0


def _uneven(rows: Sequence[int], times: Sequence[float]) -> bool:
    """Whether rows come in bursts: several GPUs whose times differ a little."""
    steps = sorted(times[b] - times[a] for a, b in pairwise(rows))
    if len(steps) < 3:
        return False
    middle, long = steps[len(steps) // 2], steps[int(len(steps) * 0.95)]
    short = steps[int(len(steps) * 0.05)]
    bursts = sum(1 for s in steps if s < 0.1 * long)
    return (short < 0.1 * long and bursts > 0.4 * len(steps)) or middle <= 0
