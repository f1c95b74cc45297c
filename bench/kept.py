"""Runs that were measured before: a benchmark that was stopped goes on where it was."""

from __future__ import annotations

import json
import re
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.measure import Run
from bench.programs import Program
from bench.staging import ROOT

_FRESH_SECONDS = 12 * 3600


@dataclass(frozen=True, slots=True)
class Kept:
    """Files of runs, one each. `length` is that of a run and its warm-up, in seconds.

    A run is taken over if it is of today's work: of the same version of a program, for Talla of
    the same source tree, at most twelve hours old.
    """

    folder: Path
    length: tuple[float, float]

    def find(self, program: Program, number: int) -> tuple[Run, float] | None:
        """A run and the load of the machine after it."""
        of = _source(program)
        try:
            told = json.loads(self._path(program, number).read_text("utf-8"))
            known = of is not None and told["of"] == of and told["length"] == list(self.length)
            if not known or time.time() - told["time"] > _FRESH_SECONDS:
                return None
            run = told["run"]
            return Run(**{**run, "tick_seconds": tuple(run["tick_seconds"])}), told["load"]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, program: Program, number: int, run: Run, load: float) -> None:
        """Keeps a run; one of a changed source tree is of no use later and is left out."""
        of = _source(program)
        if of is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        told = {"of": of, "length": self.length, "time": time.time(), "load": load}
        document = json.dumps({**told, "run": asdict(run)})
        self._path(program, number).write_text(document, "utf-8")

    def _path(self, program: Program, number: int) -> Path:
        return self.folder / f"{re.sub(r'[^a-z0-9]+', '-', program.name)}-{number}.json"


def _source(program: Program) -> str | None:
    """What a run is of; None for a source tree with changes that are not committed."""
    if not program.ours:
        return program.version
    sources = ("agent", "telemetry", "bench", "tests/fakenvml")
    if _git("status", "--porcelain", "--", *sources) != "":
        return None
    return _git("rev-parse", *(f"HEAD:{source}" for source in sources))


def _git(*words: str) -> str | None:
    done = subprocess.run(("git", *words), cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
