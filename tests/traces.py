"""Recordings of real runs, which are not part of the project: a folder outside it holds them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "TALLA_TRACES"
GPUS = {
    "train_h100x8_ddp_small": 8,
    "train_h100x8_grad_accum_3b": 8,
    "train_h100x8_tp8_pp2_node0": 8,
    "train_a100x8_ddp": 8,
    "infer_a100x8_hf_generate": 8,
    "infer_a100_llama2_7b_hf": 1,
    "train_h100x8_checkpoint_every_1000": 8,
}
"""The recordings, each with the number of its GPUs."""


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
