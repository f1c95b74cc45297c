"""The statistics and headroom of sizing that a user may choose; the rest is `thresholds.toml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Le

Share = Annotated[float, Gt(0), Le(1)]
Percentile = Annotated[float, Ge(0.5), Le(1)]
Factor = Annotated[float, Ge(1)]


def _help(text: str) -> dict[str, str]:
    return {"help": text}


@dataclass(frozen=True, slots=True)
class SizingSettings:
    """What sizing goes by: statistics of 5-minute windows, and headroom."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    compute_percentile: Percentile = field(
        default=0.995,
        metadata=_help("of time, traffic and arithmetic (AWS Compute Optimizer: P99.5 by default)"),
    )
    busy_ratio: Share = field(
        default=0.80,
        metadata=_help("a GPU is planned to be busy at most this share (a fifth of headroom)"),
    )
    vram_ratio: Share = field(
        default=0.90,
        metadata=_help("of a card, that the maximum of the need may fill (vLLM's own default)"),
    )
    ram_ratio: Share = field(default=0.90, metadata=_help("of the RAM, that the peak may reach"))
    conversion_factor: Factor = field(
        default=1.5,
        metadata=_help("doubt of a conversion between two kinds of card, in both directions"),
    )

    def sections(self) -> dict[str, dict[str, float]]:
        """As they stand in `thresholds.toml`."""
        return {
            "statistic": {"compute": self.compute_percentile},
            "headroom": {
                "busy": self.busy_ratio,
                "vram": self.vram_ratio,
                "ram": self.ram_ratio,
            },
            "conversion": {"factor": self.conversion_factor},
        }
