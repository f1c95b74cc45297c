"""Statistics and headroom are the user's; what Talla ships is their default."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from advisor import config
from advisor.errors import ConfigError
from advisor.finding import Dimension, Verdict
from advisor.rulebook import Rulebook
from advisor.sizing import judge
from advisor.sizing_config import SizingSettings
from tests.staged.frames import Made, case


def test_the_defaults_are_those_of_the_shipped_file() -> None:
    text = resources.files("advisor.sizing").joinpath("thresholds.toml").read_text("utf-8")
    shipped = tomllib.loads(text)
    for section, values in SizingSettings().sections().items():
        for name, value in values.items():
            assert shipped[section][name] == value, f"{section}.{name}"


@pytest.mark.parametrize(("busy", "verdict"), [(0.8, Verdict.OVER), (0.5, Verdict.RIGHT)])
def test_more_headroom_keeps_a_card_that_less_would_free(busy: float, verdict: Verdict) -> None:
    # Two cards of which each works a third of the time: 0.66 of one.
    made = Made(cards=2, levels=(0.33,), cache=0.2)
    rulebook = Rulebook.load(replace(SizingSettings(), busy_ratio=busy))
    (count,) = [f for f in judge(case(made, rulebook)) if f.dimension is Dimension.GPU_COUNT]
    assert count.verdict is verdict


@pytest.mark.parametrize("line", ["busy_ratio = 1.2", "compute_percentile = 0.1", "bussy = 1"])
def test_a_wrong_setting_is_refused_by_name(line: str, tmp_path: Path) -> None:
    file = tmp_path / "advisor.toml"
    file.write_text(f"[sizing]\n{line}\n")
    with pytest.raises(ConfigError, match=f"sizing.{line.split()[0]}"):
        config.load(file)
