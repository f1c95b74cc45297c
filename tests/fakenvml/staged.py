"""A scenario file and the clock that a test steps, for the fake NVML library."""

import mmap
import os
import struct
from pathlib import Path


class Scenario:
    """A scenario of the fake library, and the environment in which a program runs on it.

    With ``stepped`` the scenario's time stands still until `at` is called.
    """

    def __init__(self, library: Path, folder: Path, text: str, *, stepped: bool = False) -> None:
        self.path = folder / "scenario.txt"
        self._clock = folder / "clock"
        self._head = ""
        self._map: mmap.mmap | None = None
        if stepped:
            self._clock.write_bytes(struct.pack("d", 0.0))
            with self._clock.open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), 8)
            self._head = f"time_base=file:{self._clock}\n"
        self.rewrite(text)
        self.environment = {
            "LD_LIBRARY_PATH": str(library),
            "FAKENVML_SCENARIO": str(self.path),
            "FAKENVML_STATS": str(folder / "calls"),
        }

    def rewrite(self, text: str) -> None:
        """Replace the scenario at once; it holds from the next nvmlInit."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text(self._head + text)
        os.replace(fresh, self.path)

    def close(self) -> None:
        """Let go of the clock."""
        if self._map is not None:
            self._map.close()

    def at(self, seconds: float) -> None:
        """Set the scenario's time."""
        assert self._map is not None, "not a stepped scenario"
        self._map[:] = struct.pack("d", seconds)
