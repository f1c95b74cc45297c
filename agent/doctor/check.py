"""One line of the check-up."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Mark(StrEnum):
    """How a check came out."""

    OK = "ok"
    ABSENT = "absent"
    PROBLEM = "problem"
    FATAL = "fatal"


@dataclass(frozen=True, slots=True)
class Check:
    """`ok`; `absent` (not here, and no fault), `problem` (something to mend; sampling goes on
    without it), `fatal` (nothing can be sampled)."""

    name: str
    mark: Mark
    text: str
    remedy: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        document = {"check": self.name, "status": self.mark.value, "text": self.text}
        return document if self.remedy is None else {**document, "remedy": self.remedy}


__all__ = ["Check", "Mark"]
