"""Bin packing of memory onto cards."""

from __future__ import annotations

import math
from collections.abc import Sequence


def cards_for(jobs: Sequence[float], usable: float, overhead: float) -> int:
    """Cards that hold the jobs (bytes each): first fit decreasing, whole cards for the large.

    A job larger than a card is split by tensor parallelism over a power of two of cards. Each
    process takes `overhead` besides.
    """
    cards = 0
    free: list[float] = []
    for need in sorted(jobs, reverse=True):
        size = need + overhead
        if size > usable:
            if usable <= overhead:
                raise ValueError("no card holds a process")
            cards += 2 ** max(1, math.ceil(math.log2(need / (usable - overhead)) - 1e-9))
            continue
        for i, room in enumerate(free):
            if size <= room:
                free[i] -= size
                break
        else:
            free.append(usable - size)
    return cards + len(free)
