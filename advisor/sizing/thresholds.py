"""The thresholds of sizing (`thresholds.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from advisor.sizing_config import SizingSettings


@dataclass(frozen=True)
class Thresholds:
    """Named numbers in sections, as in the file; `number("ram", "headroom")`."""

    sections: Mapping[str, Mapping[str, float]]

    @classmethod
    def load(cls, settings: SizingSettings | None = None) -> Thresholds:
        """The thresholds that Talla ships, with what a user chose."""
        text = resources.files("advisor.sizing").joinpath("thresholds.toml").read_text("utf-8")
        sections = tomllib.loads(text)
        for name, values in (settings or SizingSettings()).sections().items():
            sections[name] = {**sections[name], **values}
        return cls(sections)

    def number(self, section: str, name: str) -> float:
        """One threshold. Raises KeyError where there is none of that name."""
        return self.sections[section][name]
