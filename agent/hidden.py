"""Keeps an optional library out of a library that would load it merely because it is there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hidden(name: str) -> Iterator[None]:
    """Within the block, importing `name` fails as if it were not installed.

    Where it is loaded already, nothing is hidden: its memory is spent.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]
