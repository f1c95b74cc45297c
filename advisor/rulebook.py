"""What a server is judged by, read once."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.profiles import Profiles
from advisor.sizing.thresholds import Thresholds
from advisor.sizing_config import SizingSettings


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The documented rules and the thresholds of sizing."""

    profiles: Profiles
    thresholds: Thresholds

    @classmethod
    def load(cls, settings: SizingSettings | None = None) -> Rulebook:
        """Those that Talla ships, with what a user chose."""
        return cls(Profiles.load(), Thresholds.load(settings))
