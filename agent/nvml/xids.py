"""What an XID means and points to (`xids.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

_NO_ERRORS = {"xid_hardware_errors": 0.0, "xid_application_errors": 0.0}


@dataclass(frozen=True, slots=True)
class Xid:
    """One XID. `points_to` is hardware, program or nothing; `look` is what to look at first."""

    code: int
    points_to: str
    meaning: str
    look: str

    @property
    def text(self) -> str:
        """For people: `XID 79: the GPU has fallen off the PCIe bus`."""
        return f"XID {self.code}: {self.meaning}"


class Xids:
    """The catalogue. A code that it lacks is told as such, and as the hardware's."""

    def __init__(self, known: Mapping[int, Xid]) -> None:
        self._known = known

    @classmethod
    def load(cls) -> Xids:
        """The catalogue that Talla ships."""
        text = resources.files("agent.nvml").joinpath("xids.toml").read_text("utf-8")
        return cls({e["code"]: Xid(**e) for e in tomllib.loads(text)["xid"]})

    def __getitem__(self, code: int) -> Xid:
        found = self._known.get(code)
        if found is not None:
            return found
        meaning = "not in Talla's list, see https://docs.nvidia.com/deploy/xid-errors/"
        return Xid(code, "hardware", meaning, "the kernel's log (dmesg), then NVIDIA's list")

    def counts(self, codes: Sequence[int]) -> Mapping[str, float]:
        """The metrics of one second."""
        if not codes:
            return _NO_ERRORS
        found = [self[code].points_to for code in codes]
        return {
            "xid_hardware_errors": float(found.count("hardware")),
            "xid_application_errors": float(found.count("program")),
        }


__all__ = ["Xid", "Xids"]
