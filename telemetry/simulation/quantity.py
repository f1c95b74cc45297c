"""Quantities as people write them: "2 TiB", "1 Gb/s", "30 min". Numbers are base units."""

from __future__ import annotations

import re
from enum import Enum

_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_UNITS = {
    "bytes": {f"{prefix}B": factor for prefix, factor in (_DECIMAL | _BINARY).items()},
    "bytes per second": {f"{p}B/s": factor for p, factor in (_DECIMAL | _BINARY).items()},
    "bits per second": {f"{prefix}b/s": factor for prefix, factor in _DECIMAL.items()},
    "seconds": {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0},
}
_EXAMPLES = {
    "bytes": "512 GiB",
    "bytes per second": "200 MB/s",
    "bits per second": "10 Gb/s",
    "seconds": "30 min",
}
_TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z/]+)\s*")


class Dimension(Enum):
    """What is measured; the value is the base unit's name."""

    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes per second"
    BITS_PER_SECOND = "bits per second"
    SECONDS = "seconds"

    @property
    def expected(self) -> str:
        """How such a quantity is written, for error messages."""
        return f'{self.value}, as a number or as text such as "{_EXAMPLES[self.value]}"'


def parse_quantity(text: str, dimension: Dimension) -> float:
    """The quantity in base units. Raises ValueError that says what is expected."""
    match = _TEXT.fullmatch(text)
    factor = _UNITS[dimension.value].get(match[2]) if match else None
    if match is None or factor is None:
        raise ValueError(dimension.expected)
    return float(match[1]) * factor
