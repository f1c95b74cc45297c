"""Recordings of real runs, which are not part of the project: a folder outside it holds them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "TALLA_TRACES"


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder that ``TALLA_TRACES`` names. Skips without it, whatever ``TALLA_REQUIRE`` says:
    the recordings have no licence, so that nobody can be made to have them.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(f"{VARIABLE} names no folder with recordings of real runs")
    path = Path(folder)
    if not any(path.glob("*.csv")):
        pytest.fail(f"{VARIABLE}={folder}: there is no recording in it", pytrace=False)
    return path
